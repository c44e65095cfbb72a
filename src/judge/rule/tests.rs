//! Rule judges, from configuration to verdict.
