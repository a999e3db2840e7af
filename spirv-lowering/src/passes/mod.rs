//! Passes: functions from KIR to KIR, one file each.

