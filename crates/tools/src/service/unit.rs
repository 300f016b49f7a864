//! A service's unit as systemd reads it: its file and the drop-ins that modify it.
//!
//! Data flow: folders in order of precedence → the first file with the unit's name, and the first drop-in of each name → the commands of
//! `ExecStart=`. See systemd.unit(5) and systemd.syntax(7).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::{Context, Result, bail};

/// Folders with units, in order of precedence.
#[derive(Debug)]
pub(super) struct Places(Vec<PathBuf>);

impl Places {
    /// The folders of system units, or of user units, below `root`.
    pub(super) fn new(is_user: bool, root: Option<&Path>) -> Result<Self> {
        let below = |path: &Path| match root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        };
        let kind = if is_user { "user" } else { "system" };
        let mut folders = Vec::new();
        if is_user {
            let set = |name: &str| {
                env::var_os(name)
                    .map(PathBuf::from)
                    .filter(|path| path.is_absolute())
            };
            let own = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
            folders.push(
                own.context(
                    "no place for the user's units: neither XDG_CONFIG_HOME nor HOME is set",
                )?
                .join("systemd/user"),
            );
            folders.extend(set("XDG_RUNTIME_DIR").map(|path| path.join("systemd/user")));
            let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
            folders.extend(data.map(|path| path.join("systemd/user")));
        }
        for parent in [
            "/etc/systemd",
            "/run/systemd",
            "/usr/local/lib/systemd",
            "/usr/lib/systemd",
            "/lib/systemd",
        ] {
            folders.push(Path::new(parent).join(kind));
        }
        // Generated at boot, for example from scripts in /etc/init.d.
        folders.push(Path::new("/run/systemd/generator").to_owned());
        folders.push(Path::new("/run/systemd/generator.late").to_owned());
        Ok(Self(folders.iter().map(|path| below(path)).collect()))
    }

    /// The administrator's folder.
    pub(super) fn own(&self) -> &Path {
        &self.0[0]
    }
}

/// The relevant settings of a service's unit.
#[derive(Debug)]
pub(super) struct Unit {
    /// Path of its file.
    pub(super) path: PathBuf,
    /// The values of `ExecStart=`, in order.
    pub(super) commands: Vec<String>,
    /// True if it runs as another user than its manager.
    pub(super) has_user: bool,
    /// `Type=`, empty where it is not set.
    pub(super) kind: String,
    /// True if `NotifyAccess=` is set.
    pub(super) has_access: bool,
}

impl Unit {
    /// Reads the unit with its drop-ins, except the drop-in named `without`.
    ///
    /// # Errors
    /// When the unit does not exist or is masked, or when a file cannot be read.
    pub(super) fn read(places: &Places, name: &str, without: &str) -> Result<Self> {
        // The file of `name@instance.service` may be `name@.service`.
        let template = name
            .split_once('@')
            .map(|(prefix, _)| format!("{prefix}@.service"));
        let names = std::iter::once(name.to_owned()).chain(template);
        let names: Vec<String> = names.collect();
        let files = names
            .iter()
            .flat_map(|name| places.0.iter().map(move |folder| folder.join(name)));
        let mut files = files.filter(|path| path.symlink_metadata().is_ok());
        let Some(path) = files.next() else {
            let tried = places.0.iter().map(|folder| folder.display().to_string());
            bail!("no unit {name} in {}", tried.collect::<Vec<_>>().join(", "));
        };
        let is_masked = path
            .read_link()
            .is_ok_and(|to| to == Path::new("/dev/null"));
        if is_masked {
            bail!("{}: the unit is masked", path.display());
        }
        let mut unit = Self {
            commands: Vec::new(),
            has_user: false,
            kind: String::new(),
            has_access: false,
            path,
        };
        let path = unit.path.clone();
        unit.take(&path)?;
        for drop_in in drop_ins(places, &names, without)?.values() {
            unit.take(drop_in)?;
        }
        Ok(unit)
    }

    /// Adds the settings of a file.
    fn take(&mut self, path: &Path) -> Result<()> {
        let text = fs::read(path).with_context(|| path.display().to_string())?;
        for (name, value) in settings(&String::from_utf8_lossy(&text), "Service") {
            match name.as_str() {
                "ExecStart" if value.is_empty() => self.commands.clear(),
                "ExecStart" => self.commands.push(value),
                "Type" => self.kind = value,
                "NotifyAccess" => self.has_access = !value.is_empty(),
                "User" | "DynamicUser" => self.has_user = !value.is_empty() && value != "root",
                _ => {}
            }
        }
        Ok(())
    }
}

/// The drop-ins for these names of a unit, sorted by file name as systemd reads them.
fn drop_ins(places: &Places, names: &[String], without: &str) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for name in names {
        for place in &places.0 {
            let folder = place.join(format!("{name}.d"));
            let listed = match fs::read_dir(&folder) {
                Ok(listed) => listed,
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                Err(why) => return Err(why).with_context(|| folder.display().to_string()),
            };
            for entry in listed {
                let path = entry.with_context(|| folder.display().to_string())?.path();
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let file = file.into_owned();
                if file.ends_with(".conf") && file != without {
                    found.entry(file).or_insert(path);
                }
            }
        }
    }
    Ok(found)
}

/// The settings of one section, in order. A line ending in a backslash continues in the next line that is no comment.
fn settings(text: &str, section: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_in = false;
    let mut begun = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(part) = line.strip_suffix('\\') {
            begun.push_str(part);
            begun.push(' ');
            continue;
        }
        begun.push_str(line);
        let line = std::mem::take(&mut begun);
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            is_in = name == section;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_in) {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_and_comments_do_not_count() {
        let text = "[Unit]\nExecStart=/no\n[Service]\n# ExecStart=/no\nExecStart=/bin/a \\\n# within\n  -b\n\nUser = me\n[Install]\nUser=no\n";
        let told = settings(text, "Service");
        let told: Vec<(&str, Vec<&str>)> = told
            .iter()
            .map(|(name, value)| (name.as_str(), value.split_whitespace().collect()))
            .collect();
        assert_eq!(
            told,
            [("ExecStart", vec!["/bin/a", "-b"]), ("User", vec!["me"])]
        );
    }

    #[test]
    fn drop_ins_count_by_name_and_the_administrator_s_before_others() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "lib/systemd/system/s@.service",
            "[Service]\nExecStart=/bin/one\nUser=me\n",
        );
        write(
            "lib/systemd/system/s@.service.d/10.conf",
            "[Service]\nExecStart=/no\n",
        );
        write(
            "etc/systemd/system/s@.service.d/10.conf",
            "[Service]\nExecStart=\nExecStart=-/bin/two\n",
        );
        write(
            "etc/systemd/system/s@x.service.d/own.conf",
            "[Service]\nExecStart=/no\n",
        );
        write(
            "etc/systemd/system/s@y.service.d/20.conf",
            "[Service]\nExecStart=/no\n",
        );
        let places = Places::new(false, Some(root.path())).unwrap();
        let unit = Unit::read(&places, "s@x.service", "own.conf").unwrap();
        assert_eq!(unit.commands, ["-/bin/two"]);
        assert!(unit.has_user);
        let why = Unit::read(&places, "t.service", "own.conf").unwrap_err();
        assert!(
            why.to_string().starts_with("no unit t.service in "),
            "{why}"
        );
    }
}
