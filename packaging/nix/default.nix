# SPDX-License-Identifier: MIT OR Apache-2.0
# For Nix, in the form of nixpkgs: `nix-build -E 'with import <nixpkgs> {}; callPackage ./packaging/nix {}'` in a tree, or with
# `src` of a release. On NixOS: hardware.graphics.extraPackages. docs/packaging.md says what was checked.
{ lib
, rustPlatform
, llvmPackages_22
, libclc
, python3
, vulkan-loader
, src ? ../..
}:

rustPlatform.buildRustPackage {
  pname = "pumice";
  version = (lib.importTOML "${src}/Cargo.toml").workspace.package.version;
  inherit src;
  cargoLock.lockFile = "${src}/Cargo.lock";

  nativeBuildInputs = [ python3 ];
  PUMICE_CLANG = "${llvmPackages_22.clang-unwrapped}/bin/clang";
  PUMICE_LIBCLC = "${libclc}/share/clc/spirv64-mesa3d-.spv";

  buildType = "dist";
  cargoBuildFlags = [ "-p" "pumice" "-p" "pumice-icd" ];
  # The tests want Vulkan and a home.
  doCheck = false;

  installPhase = ''
    runHook preInstall
    patchShebangs ci
    ci/install --build "$(dirname "$(find target -name libpumice.so -path '*/dist/libpumice.so')")" \
      --prefix $out --icd-dir $out/etc/OpenCL/vendors
    runHook postInstall
  '';

  # Both are opened when needed. `compiler/bin/clang` beside the library is looked for before PATH.
  postFixup = ''
    mkdir -p $out/lib/compiler/bin
    ln -s $PUMICE_CLANG $out/lib/compiler/bin/clang
    patchelf --add-rpath ${lib.makeLibraryPath [ vulkan-loader ]} $out/lib/libpumice.so
  '';

  meta = {
    description = "OpenCL driver for Vulkan devices and for the processor";
    homepage = "https://example.invalid/pumice";
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "pumice";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
