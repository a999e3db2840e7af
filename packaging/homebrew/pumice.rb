# SPDX-License-Identifier: MIT OR Apache-2.0
# For Homebrew on Linux, from the sources of a release, which have those of all crates. docs/packaging.md says what was checked.
class Pumice < Formula
  desc "OpenCL driver for Vulkan devices and for the processor"
  homepage "https://example.invalid/pumice"
  url "https://example.invalid/pumice/releases/download/v0.1.0/pumice-0.1.0.tar.gz"
  # SHA256SUMS of the release has it.
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "libclc" => :build
  depends_on "python@3.13" => :build
  depends_on "rust" => :build
  depends_on :linux
  depends_on "llvm"
  depends_on "opencl-icd-loader"
  depends_on "vulkan-loader"

  def install
    ENV["PUMICE_CLANG"] = Formula["llvm"].opt_bin/"clang"
    ENV["PUMICE_LIBCLC"] = Formula["libclc"].opt_share/"clc/spirv64-mesa3d-.spv"
    system "cargo", "build", "--profile", "dist", "--offline", "--locked", "-p", "pumice", "-p", "pumice-icd"
    system "ci/install", "--build", "target/dist", "--prefix", prefix, "--icd-dir", etc/"OpenCL/vendors"
    # Looked for beside the library before PATH.
    (lib/"compiler/bin").install_symlink Formula["llvm"].opt_bin/"clang"
  end

  def caveats
    <<~EOS
      Loaders that do not come from Homebrew look for drivers in /etc/OpenCL/vendors:
        sudo ln -s #{etc}/OpenCL/vendors/pumice.icd /etc/OpenCL/vendors/
      or run programs with `pumice run PROGRAM`.
    EOS
  end

  test do
    ENV["PUMICE_DEVICES"] = "cpu"
    assert_match "compiled and ran a kernel", shell_output("#{bin}/pumice doctor")
  end
end
