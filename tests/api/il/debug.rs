//! Debug information is read over: OpenCL.DebugInfo.100, sets without semantics, names, lines.

use super::{assemble, build, run_program, Data, Il};
use pumice_tests::Setup;

#[test]
fn debug_information() {
    let setup = Setup::new();
    let text = Il::new(
        "OpLine %file 7 1
         %scope = OpExtInst %void %debug DebugScope %function
         %x = in u32 0
         OpNoLine
         %value = OpExtInst %void %debug DebugValue %local %x %expression
         %note = OpExtInst %void %printf 1 %file %x
         %none = OpExtInst %void %debug DebugNoScope
         OpLine %file 8 1
         out 0 u32 %x",
    )
    .needs("SPV_KHR_non_semantic_info")
    .with(
        "%source = OpExtInst %void %debug DebugSource %file %code
         %unit = OpExtInst %void %debug DebugCompilationUnit 65536 4 %source OpenCL_C
         %kind = OpExtInst %void %debug DebugTypeBasic %name %u32_32 Unsigned
         %shape = OpExtInst %void %debug DebugTypeFunction FlagIsPublic %void
         %function = OpExtInst %void %debug DebugFunction %name %shape %source 7 1 %unit %name FlagIsPublic 7 %k
         %local = OpExtInst %void %debug DebugLocalVariable %name %kind %source 7 1 %function FlagIsLocal
         %expression = OpExtInst %void %debug DebugExpression",
    )
    .text()
    .replace(
        "OpMemoryModel",
        "%debug = OpExtInstImport \"OpenCL.DebugInfo.100\"
         %printf = OpExtInstImport \"NonSemantic.Anything\"
         OpMemoryModel",
    )
    .replace(
        "OpEntryPoint Kernel %k \"k\"\n",
        "OpEntryPoint Kernel %k \"k\"
         %file = OpString \"kernel.cl\"
         %code = OpString \"kernel void k() {}\"
         %name = OpString \"k\"
         OpSource OpenCL_C 300000 %file
         OpName %k \"k\"
         OpModuleProcessed \"by hand\"\n",
    );
    // Modes and decorations come between the entry point and the strings, of which there are none here.
    // The text of a source has to be a string; llvm-spirv puts DebugInfoNone there.
    let none = "%nothing = OpExtInst %void %debug DebugInfoNone\n%source =";
    let careless = text
        .replace("%source =", none)
        .replace("DebugSource %file %code", "DebugSource %file %nothing");
    for text in [text, careless] {
        let program = build(&setup, &assemble(&text)).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let out = run_program(&setup, &program, &Data::new().put(0, &[3u32]), 1);
        assert_eq!(out.one::<u32>(0), 3);
    }
}
