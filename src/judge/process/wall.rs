//! Walls around a child, held up by the kernel (Landlock).
//!
//! A restriction binds the thread that asks for it and everything it starts, so a thread of
//! its own restricts itself, starts the child and ends. The caller's threads stay free.

#[cfg(target_os = "linux")]
pub(crate) use linux::raise;

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };

    use crate::judge::process::Isolation;

    /// What programs need to start and run. `/proc` is not among them: it shows other
    /// processes' environments, and with them their keys.
    const SYSTEM: [&str; 12] = [
        "/bin",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/nix/store",
        "/opt",
        "/sbin",
        "/usr",
        "/dev/urandom",
        "/dev/random",
        "/dev/zero",
    ];

    /// Restricts the calling thread for good, and says what the kernel enforces.
    ///
    /// # Errors
    /// When the kernel can't hold up what `isolation` promises.
    pub(crate) fn raise(
        isolation: Isolation,
        read: &[PathBuf],
        write: &[PathBuf],
        program: &Path,
    ) -> Result<&'static str, String> {
        restrict(isolation, read, write, program)
            .map_err(|error| format!("the kernel can't enforce it ({error})"))
            .and_then(|status| match status {
                RulesetStatus::FullyEnforced => Ok("fully_enforced"),
                RulesetStatus::PartiallyEnforced => Ok("partially_enforced"),
                RulesetStatus::NotEnforced => {
                    Err("the kernel has no Landlock, or it is switched off".to_owned())
                }
            })
    }

    fn restrict(
        isolation: Isolation,
        read: &[PathBuf],
        write: &[PathBuf],
        program: &Path,
    ) -> Result<RulesetStatus, RulesetError> {
        // The first version's file rights and TCP are the promise; what later kernels add
        // (renaming across folders, truncation, devices, UDP, signals) is taken where it is.
        let newest = ABI::V6;
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))?;
        if isolation == Isolation::FilesAndNetwork {
            rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
        }
        rules = rules
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(newest))?
            .scope(Scope::Signal)?;
        if isolation == Isolation::FilesAndNetwork {
            rules = rules.scope(Scope::AbstractUnixSocket)?;
        }
        let program_file = program.canonicalize();
        let readable = SYSTEM
            .iter()
            .map(Path::new)
            .chain(read.iter().map(PathBuf::as_path))
            .chain([program])
            .chain(program_file.iter().map(PathBuf::as_path));
        let writable = write.iter().map(PathBuf::as_path);
        let status = rules
            .create()?
            .add_rules(path_beneath_rules(readable, AccessFs::from_read(newest)))?
            .add_rules(path_beneath_rules(
                writable.chain([Path::new("/dev/null")]),
                AccessFs::from_all(newest),
            ))?
            .restrict_self()?;
        Ok(status.ruleset)
    }
}
