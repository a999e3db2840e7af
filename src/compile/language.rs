//! OpenCL C as a device offers it: its version, and the extensions and features that clang gets.

/// A version of OpenCL C or C++ for OpenCL, as in `-cl-std`. The order is that of their contents
/// besides classes: C++ for OpenCL 1.0 is based on OpenCL C 2.0, that of 2021 on 3.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ClStd {
    C10,
    C11,
    C12,
    C20,
    Cxx10,
    C30,
    C31,
    Cxx2021,
}

impl ClStd {
    /// Parses the value of `-cl-std`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "CL1.0" => Self::C10,
            "CL1.1" => Self::C11,
            "CL1.2" => Self::C12,
            "CL2.0" => Self::C20,
            "CL3.0" => Self::C30,
            "CL3.1" => Self::C31,
            // The version that CL_DEVICE_CXX_FOR_OPENCL_NUMERIC_VERSION_EXT says.
            "CLC++" | "CLC++1.0" => Self::Cxx10,
            "CLC++2021" => Self::Cxx2021,
            _ => return None,
        })
    }

    /// Returns the name that clang accepts. Compilers before clang 23 do not know 3.1: its
    /// additions come as macros.
    pub fn clang_name(self) -> &'static str {
        match self {
            Self::C10 => "CL1.0",
            Self::C11 => "CL1.1",
            Self::C12 => "CL1.2",
            Self::C20 => "CL2.0",
            Self::C30 | Self::C31 => "CL3.0",
            Self::Cxx10 => "CLC++1.0",
            Self::Cxx2021 => "CLC++2021",
        }
    }

    /// Returns true for C++ for OpenCL.
    pub fn is_cxx(self) -> bool {
        matches!(self, Self::Cxx10 | Self::Cxx2021)
    }
}

/// The language that a device offers, with its extensions and features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Language {
    /// Names of the extensions with OpenCL C meaning (`cl_khr_fp64`, ...).
    pub extensions: Vec<&'static str>,
    /// Names of the optional features (`__opencl_c_fp64`, ...).
    pub features: Vec<&'static str>,
    /// The highest OpenCL version the device reports, times 100: `__OPENCL_VERSION__`.
    pub opencl_version: u32,
    /// Set if the device has images: `__IMAGE_SUPPORT__`.
    pub images: bool,
}

impl Language {
    /// Returns the option `-cl-ext=` with exactly the extensions and features of the device.
    pub fn cl_ext(&self, std: ClStd) -> String {
        let mut text = String::from("-cl-ext=-all");
        // What is optional since 3.0 was part of 2.0, and clang asks for its names there too.
        let features = if std >= ClStd::C20 {
            self.features.as_slice()
        } else {
            &[]
        };
        for name in self.extensions.iter().chain(features) {
            text += ",+";
            text += name;
        }
        text
    }

    /// Returns bytes that differ for languages whose arguments for clang differ in any version, for the
    /// cache key. How [`Self::cl_ext`] and [`Self::macros`] make these is a matter of its `REVISION`.
    pub fn identity(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend(self.opencl_version.to_le_bytes());
        bytes.push(u8::from(self.images));
        for names in [&self.extensions, &self.features] {
            for name in names {
                bytes.extend(name.as_bytes());
                bytes.push(b' ');
            }
            bytes.push(b'\n');
        }
        bytes
    }

    /// Returns macro options (`-D`, `-U`) for macros that clang does not define by itself, or
    /// defines wrongly.
    pub fn macros(&self, std: ClStd) -> Vec<String> {
        let mut macros = vec![format!("-D__OPENCL_VERSION__={}", self.opencl_version)];
        if !self.images {
            macros.push("-U__IMAGE_SUPPORT__".into());
        }
        // clang knows some of the names and takes them by -cl-ext; for it the same definition again is no redefinition.
        // Those of an extension come with it in every version. OpenCL C 2.0 has sub-groups by cl_khr_subgroups alone, and clang
        // refuses them there without it.
        let in_version = |name: &&&str| match **name {
            name if name.starts_with("__opencl_c_integer_dot_product") => true,
            "__opencl_c_subgroups" => std >= ClStd::C30,
            _ => std >= ClStd::C20,
        };
        let features = self.features.iter().filter(in_version);
        macros.extend(
            self.extensions
                .iter()
                .chain(features)
                .map(|name| format!("-D{name}=1")),
        );
        if std == ClStd::C31 {
            macros.push("-DCL_VERSION_3_1=310".into());
            macros.push("-U__OPENCL_C_VERSION__".into());
            macros.push("-D__OPENCL_C_VERSION__=310".into());
        }
        if std.is_cxx() {
            macros.push("-D__opencl_cpp_destructor_with_address_spaces=1".into());
            macros.push("-D__opencl_cpp_global_destructor=1".into());
        }
        macros
    }
}
