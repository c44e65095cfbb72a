//! Programs and files that a configuration names: found when the judge is built, and hashed
//! where they are part of what makes the judge that judge.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::judge::{BuildContext, BuildError};

/// Finds a program: with a path separator in its name relative to the configuration (then
/// to `folders`), else on `PATH`.
pub(crate) fn find_program(
    name: &str,
    field: &str,
    context: &BuildContext,
    folders: &[&Path],
) -> Result<PathBuf, BuildError> {
    if name.is_empty() {
        return Err(BuildError::invalid(field, "expected a program, found an empty text"));
    }
    let (places, where_from): (Vec<PathBuf>, String) = if name.contains(std::path::is_separator) {
        let base = std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone());
        let mut places = vec![base.join(name)];
        places.extend(folders.iter().map(|folder| folder.join(name)));
        let shown: Vec<String> = places.iter().map(|p| format!("`{}`", p.display())).collect();
        (places, shown.join(" and "))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        (std::env::split_paths(&path).map(|folder| folder.join(name)).collect(), "PATH".to_owned())
    };
    if let Some(found) = places.iter().find(|place| is_executable(place)) {
        return Ok(found.clone());
    }
    let reason = match places.iter().find(|place| place.is_file()) {
        Some(file) => format!("`{}` is not executable: `chmod +x` it", file.display()),
        None => format!(
            "program `{name}` not found: looked in {where_from}; install it, or give its path from the panel's folder, such as `./{name}`"
        ),
    };
    Err(BuildError::invalid(field, reason))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// What of one argument makes a judge that judge: its text, and where it names a file below
/// the configuration's folder, that file's content. Programs of the system count by name:
/// their bytes differ between machines on which they do the same.
pub(crate) fn file_identity(argument: &str, context: &BuildContext) -> Value {
    let inside = || -> Option<String> {
        let base = context.base.canonicalize().ok()?;
        let file = context.resolve(Path::new(argument)).canonicalize().ok()?;
        if !file.is_file() || !file.starts_with(&base) {
            return None;
        }
        content_hash(&file).ok()
    };
    match inside() {
        Some(hash) => json!({ "argument": argument, "content": hash }),
        None => json!(argument),
    }
}

/// What runs a file that is its argument.
const INTERPRETERS: [&str; 14] = [
    "python", "pypy", "node", "deno", "bun", "sh", "bash", "dash", "zsh", "ruby", "perl", "php",
    "lua", "Rscript",
];

/// Endings of files that an interpreter runs.
const SCRIPTS: [&str; 14] =
    ["py", "js", "mjs", "cjs", "ts", "mts", "sh", "bash", "zsh", "rb", "pl", "php", "lua", "R"];

/// Whether a program is an interpreter, whatever its version: `python3.12` is `python`.
fn is_interpreter(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&name)
}

/// The arguments of an interpreter that look like a file (a script's ending, or a path
/// separator) and are none, seen from any of the folders. Code, options, addresses and
/// placeholders are none of them.
pub(crate) fn missing_files<'a>(argv: &'a [String], folders: &[&Path]) -> Vec<&'a str> {
    let Some((program, arguments)) = argv.split_first() else { return Vec::new() };
    if !is_interpreter(program) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let mut option_before = false;
    for argument in arguments {
        let after_option = std::mem::replace(&mut option_before, argument.starts_with('-'));
        // `-c CODE`, `-e CODE`, `-m MODULE`; in `-u FILE` the file has a script's ending.
        let ending = Path::new(argument).extension().and_then(std::ffi::OsStr::to_str);
        let is_script = ending.is_some_and(|ending| SCRIPTS.contains(&ending));
        let is_path = argument.contains(std::path::is_separator) && !after_option;
        let is_other = argument.starts_with('-')
            || argument.contains("://")
            || argument.contains(['{', '*', ' ', '\n', '(', '|', '$']);
        if is_other || !(is_script || is_path) {
            continue;
        }
        if !folders.iter().any(|folder| folder.join(argument).exists()) {
            missing.push(argument.as_str());
        }
    }
    missing
}

/// What to say of such arguments.
pub(crate) fn missing_warning(what: &str, missing: &[&str], folder: &Path) -> Option<String> {
    let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    let (is, it) = if names.len() == 1 { ("is", "it") } else { ("are", "they") };
    (!names.is_empty()).then(|| {
        format!(
            "{what}: {} {is} not there, seen from `{}`: if {it} should be, mend `argv`, or set `cwd`",
            names.join(", "),
            folder.display()
        )
    })
}

/// Whether an interpreter says that it could not open the very file it was to run: such a
/// check has not failed, it could not run. What a running script says has another form.
pub(crate) fn script_not_found(program: &Path, code: i32, stderr: &str) -> bool {
    let program = program.to_string_lossy();
    if !is_interpreter(&program) {
        return false;
    }
    let first = stderr.trim_start().lines().next().unwrap_or_default();
    match code {
        // Python; older shells.
        2 => {
            (first.contains(": can't open file '") && first.contains("[Errno"))
                || first.contains(": 0: cannot open ")
                || (first.contains(": 0: Can't open "))
                || first.starts_with("Can't open perl script ")
        }
        // A module that a running script lacks has the script in its stack.
        1 => {
            (stderr.contains("Error: Cannot find module '") && stderr.contains("requireStack: []"))
                || (first.starts_with("ruby: No such file or directory -- "))
        }
        _ => false,
    }
}

/// A hash of a folder's files: relative paths and contents, in path order.
///
/// # Errors
/// When something in it can't be read.
pub(crate) fn folder_identity(folder: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        if file.is_symlink() {
            hasher.update(std::fs::read_link(&file)?.to_string_lossy().as_bytes());
        } else {
            hasher.update(content_hash(&file)?.as_bytes());
        }
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn content_hash(file: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(file)?)?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_misspelt_script_is_missing_and_code_options_and_placeholders_are_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("test_answer.py"), "").unwrap();
        let missing = |words: &[&str]| {
            let argv = argv(words);
            missing_files(&argv, &[folder.path()])
                .iter()
                .map(|s| (*s).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(missing(&["python3", "tests_answer.py", "{output_file}"]), ["tests_answer.py"]);
        assert_eq!(missing(&["/usr/bin/python3.12", "-u", "no.py"]), ["no.py"]);
        assert_eq!(missing(&["node", "tests/run"]), ["tests/run"]);
        let none: [&[&str]; 8] = [
            &["python3", "test_answer.py"],
            &["python3", "-c", "print(1/2)"],
            &["python3", "-m", "py_compile", "{output_file}"],
            &["sh", "-c", "cat out/x.py"],
            &["grep", "-q", "a/b.py"],
            &["node", "https://example.com/a.js"],
            &["sh", "-c", "a/b"],
            &[],
        ];
        for words in none {
            assert!(missing(words).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn only_an_interpreter_that_could_not_open_its_script_could_not_run() {
        let python = Path::new("/usr/bin/python3");
        let said =
            "/usr/bin/python3: can't open file '/w/no.py': [Errno 2] No such file or directory\n";
        assert!(script_not_found(python, 2, said));
        assert!(!script_not_found(python, 1, said));
        assert!(!script_not_found(Path::new("/usr/bin/cargo"), 2, said));
        assert!(!script_not_found(python, 2, &format!("usage: test.py\n{said}")));
        let node = Path::new("/usr/bin/node");
        let main = "node:internal:1\n  throw err;\n\nError: Cannot find module '/w/no.js'\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n";
        assert!(script_not_found(node, 1, main));
        assert!(!script_not_found(node, 1, &main.replace("[]", "[ '/w/answer.js' ]")));
        assert!(script_not_found(
            Path::new("/bin/sh"),
            2,
            "sh: 0: cannot open no.sh: No such file\n"
        ));
    }
}
