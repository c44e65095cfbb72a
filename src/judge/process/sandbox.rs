//! What a child may see and use: environment, limits, walls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::judge::{BuildContext, BuildError};

/// Variables that a child always gets, where they are set.
const ALWAYS: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// What the programs of a judge may see and use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSpec {
    /// Environment variables passed on, beside `PATH`, `HOME`, `LANG` and `TMPDIR`. Keys
    /// that a program needs belong here: the values stay out of configuration and
    /// fingerprints.
    pub env: Vec<String>,
    /// Environment variables set to a value. Not for secrets.
    pub set_env: BTreeMap<String, String>,
    /// The home and temporary folder: the user's, or one of its own that is removed after.
    /// Behind a file wall it is always one of its own.
    pub home: Home,
    /// Walls that the kernel holds up (Landlock; Linux only). Where it can't, the measurement
    /// fails; it is never made without the wall.
    pub isolation: Isolation,
    /// Files and folders readable behind the wall, beside the system's, the program and the
    /// folder it runs in.
    pub read: Vec<PathBuf>,
    /// Files and folders writable behind the wall, beside its temporary folder.
    pub write: Vec<PathBuf>,
    /// Address space of one process at most, in MiB (Linux only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// CPU time of one process at most, in seconds (Linux only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Size of a written file at most, in MiB (Linux only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mb: Option<u64>,
    /// Processes and threads of this user at most, all that already run included (Linux
    /// only; the superuser is not held by it).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes kept of each output stream, in KiB, half from its start and half from its end;
    /// 256 when absent. What is beyond is read and dropped, so the program is not held up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_kb: Option<u64>,
}

/// Whose home and temporary folder a program sees.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// The user's own.
    #[default]
    User,
    /// A new one for each case, removed after it.
    Private,
}

/// Which walls stand around a program.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// None.
    #[default]
    None,
    /// Files: reads what the system needs, writes its own temporary folder.
    Files,
    /// Files, and no TCP connection in or out (UDP too where the kernel can).
    FilesAndNetwork,
}

impl Isolation {
    /// The name in configuration and notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Files => "files",
            Self::FilesAndNetwork => "files_and_network",
        }
    }
}

/// A sandbox whose settings were checked.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    spec: SandboxSpec,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl SandboxSpec {
    /// Checks the settings; `field` is where they stand in the configuration.
    pub(crate) fn build(&self, field: &str, context: &BuildContext) -> Result<Sandbox, BuildError> {
        let at = |key: &str| format!("{field}.{key}");
        for name in self.env.iter().chain(self.set_env.keys()) {
            if name.is_empty() || name.contains(['=', '\0']) {
                let key = if self.set_env.contains_key(name) { "set_env" } else { "env" };
                let reason = format!("`{name}` is not the name of an environment variable");
                return Err(BuildError::invalid(at(key), reason));
            }
        }
        if let Some((name, _)) = self.set_env.iter().find(|(_, value)| value.contains('\0')) {
            return Err(BuildError::invalid(at("set_env"), format!("`{name}` holds a zero byte")));
        }
        let limits = [
            ("memory_mb", self.memory_mb),
            ("cpu_seconds", self.cpu_seconds),
            ("file_mb", self.file_mb),
            ("processes", self.processes),
            ("output_kb", self.output_kb),
        ];
        for (key, limit) in limits {
            match limit {
                Some(0) => return Err(BuildError::invalid(at(key), "expected 1 or more, found 0")),
                Some(_) if cfg!(not(target_os = "linux")) && key != "output_kb" => {
                    return Err(BuildError::invalid(at(key), "this limit works on Linux only"));
                }
                _ => {}
            }
        }
        // A megabyte is plenty for feedback, and keeps many checks at once within memory.
        if self.output_kb.is_some_and(|kb| kb > 64 * 1024) {
            return Err(BuildError::invalid(at("output_kb"), "expected at most 65536 (64 MiB)"));
        }
        if self.isolation != Isolation::None && cfg!(not(target_os = "linux")) {
            let reason = "walls need Landlock, which Linux alone has: use `none`";
            return Err(BuildError::invalid(at("isolation"), reason));
        }
        if self.isolation == Isolation::None && !(self.read.is_empty() && self.write.is_empty()) {
            let key = if self.read.is_empty() { "write" } else { "read" };
            let reason = "has no effect without a wall: set `isolation = \"files\"`";
            return Err(BuildError::invalid(at(key), reason));
        }
        let existing = |key: &str, paths: &[PathBuf]| {
            let check = |path: &PathBuf| {
                let full = context.resolve(path);
                full.canonicalize().map_err(|source| BuildError::File {
                    field: at(key),
                    path: full,
                    source,
                })
            };
            paths.iter().map(check).collect::<Result<Vec<_>, _>>()
        };
        Ok(Sandbox {
            read: existing("read", &self.read)?,
            write: existing("write", &self.write)?,
            spec: self.clone(),
        })
    }
}

impl Sandbox {
    pub(crate) fn isolation(&self) -> Isolation {
        self.spec.isolation
    }

    pub(crate) fn read(&self) -> &[PathBuf] {
        &self.read
    }

    pub(crate) fn write(&self) -> &[PathBuf] {
        &self.write
    }

    /// Whether the program sees a home of its own.
    pub(crate) fn private_home(&self) -> bool {
        self.spec.home == Home::Private || self.spec.isolation != Isolation::None
    }

    pub(crate) fn output_bytes(&self) -> usize {
        self.spec.output_kb.unwrap_or(256) as usize * 1024
    }

    pub(crate) fn limits_cpu(&self) -> bool {
        self.spec.cpu_seconds.is_some()
    }

    pub(crate) fn limits_file_size(&self) -> bool {
        self.spec.file_mb.is_some()
    }

    /// The child's whole environment; `private` is its home where it has one of its own.
    pub(crate) fn environment(&self, private: &Path) -> BTreeMap<OsString, OsString> {
        let allowed = ALWAYS.iter().copied().chain(self.spec.env.iter().map(String::as_str));
        let mut environment: BTreeMap<OsString, OsString> =
            allowed.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        if self.private_home() {
            for name in ["HOME", "TMPDIR"] {
                environment.insert(name.into(), private.into());
            }
        }
        for (name, value) in &self.spec.set_env {
            environment.insert(name.into(), value.into());
        }
        environment
    }

    /// What of it can change a judge's answers, for the fingerprint.
    pub(crate) fn identity(&self) -> serde_json::Value {
        let mut spec = serde_json::to_value(&self.spec).unwrap_or_default();
        if let Some(keys) = spec.as_object_mut() {
            keys.remove("output_kb");
        }
        spec
    }

    /// Sets the limits of a child that was just started.
    #[cfg(target_os = "linux")]
    pub(crate) fn limit(&self, child: rustix::process::Pid) -> std::io::Result<()> {
        use rustix::process::{Resource, Rlimit, prlimit};
        const MIB: u64 = 1024 * 1024;
        let hard = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
        let limits = [
            (Resource::As, self.spec.memory_mb.map(|mb| hard(mb.saturating_mul(MIB)))),
            // The soft limit sends SIGXCPU, which tells why; the hard one a second later kills.
            (
                Resource::Cpu,
                self.spec.cpu_seconds.map(|seconds| Rlimit {
                    current: Some(seconds),
                    maximum: Some(seconds.saturating_add(1)),
                }),
            ),
            (Resource::Fsize, self.spec.file_mb.map(|mb| hard(mb.saturating_mul(MIB)))),
            (Resource::Nproc, self.spec.processes.map(hard)),
        ];
        // A core dump is a file that nobody asked for.
        let no_core = (Resource::Core, Some(hard(0)));
        for (resource, limit) in limits.into_iter().chain([no_core]) {
            let Some(limit) = limit else { continue };
            match prlimit(Some(child), resource, limit) {
                // It is already over: there is nothing left to limit.
                Err(rustix::io::Errno::SRCH) => return Ok(()),
                other => other.map(|_| ())?,
            }
        }
        Ok(())
    }
}
