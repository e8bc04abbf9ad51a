//! `schedule`: what an operator should do every day, done by systemd.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use etcetera::base_strategy::{BaseStrategy, Xdg};
use remora_host::{Error, Level};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::Exit;
use crate::cli::visible;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  remora schedule --print
  remora schedule --backup-to /mnt/disk/remora

Writes user units of systemd for this store, into systemd's own folder, and says how to
enable them; nothing runs before that. Run again it writes them afresh. What they say is
in `journalctl --user -u 'remora-*'`.")]
pub(crate) struct ScheduleArgs {
    /// Print them instead of writing them
    #[arg(long)]
    print: bool,
    /// Where the backups go, best on another disk [default: beside the store]
    #[arg(long, value_name = "DIR")]
    backup_to: Option<PathBuf>,
    /// How many backups are kept there
    #[arg(long, value_name = "N", default_value_t = 14,
          value_parser = clap::value_parser!(u32).range(1..))]
    keep_backups: u32,
    /// The most sensitive level of which the journal may hold keys, in the digest
    #[arg(long, value_name = "LEVEL", default_value = "PUBLIC")]
    digest_up_to: Level,
}

/// A thing to do every day.
struct Job {
    name: &'static str,
    what: &'static str,
    /// The time of day. Behind each other, and the backup behind the check.
    at: &'static str,
    words: Vec<String>,
    /// A folder that it needs besides the store.
    folder: Option<String>,
    /// Where a disk must be mounted, or it fails.
    disk: Option<String>,
}

pub(super) fn run(context: &mut Context<'_>, args: &ScheduleArgs) -> anyhow::Result<Exit> {
    context.globals.refuse("schedule", super::WHOLE_STORE)?;
    let store = context.name_store()?;
    let binary = std::env::current_exe().context("The path of this program is unknown")?;
    let backups = match &args.backup_to {
        Some(folder) => std::path::absolute(folder)
            .with_context(|| format!("{} has no absolute path", folder.display()))?,
        None => beside(&store),
    };
    if resolved(&backups).starts_with(resolved(&store)) {
        return Err(Error::invalid(
            format!("{} is inside the store", backups.display()),
            "A backup is for the day on which the store is gone",
            "Choose a folder elsewhere with --backup-to, best on another disk",
        )
        .into());
    }
    // A folder on a disk that is not there would be made on the disk beneath.
    let disk = match &args.backup_to {
        Some(_) => mount_point(&resolved(&backups)).as_deref().map(unicode),
        None => None,
    };
    let units = units(
        &unicode(&binary)?,
        &unicode(&store)?,
        &jobs(&unicode(&backups)?, disk.transpose()?, args),
    );
    if args.print {
        print(context, &units)?;
        return Ok(Exit::Done);
    }
    let folder = unit_folder()?;
    let say = |path: &Path, error: io::Error| {
        Error::unavailable(
            format!("{} can't be written: {error}", path.display()),
            "systemd reads a user's units there",
            "Make it writable, or use --print and put them where they belong",
        )
    };
    fs::create_dir_all(&folder).map_err(|error| say(&folder, error))?;
    for (name, text) in &units {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| say(&path, error))?;
    }
    let shown = visible::line(&folder.display().to_string());
    let timers: Vec<&str> = units
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.ends_with(".timer"))
        .collect();
    if context.globals.json {
        let names: Vec<&String> = units.iter().map(|(name, _)| name).collect();
        let report = json!({ "folder": folder.display().to_string(), "units": names });
        super::json(context, &report)?;
        return Ok(Exit::Done);
    }
    let console = &mut context.console;
    console.line(&format!("Wrote {} units to {shown}.", units.len()))?;
    console.remark("To have them run from now on, also while you are not logged in:")?;
    console.remark("  systemctl --user daemon-reload")?;
    console.remark(&format!(
        "  systemctl --user enable --now {}",
        timers.join(" ")
    ))?;
    console.remark("  loginctl enable-linger")?;
    if args.backup_to.is_none() {
        console.note(&format!(
            "backups go to {}, which is on the store's own disk; --backup-to names another \
             place.",
            backups.display()
        ))?;
    }
    if binary.components().any(|part| part.as_os_str() == "target") {
        console.note(
            "this program runs from a folder of cargo's, which `cargo clean` deletes; \
             install it, and run this again from there.",
        )?;
    }
    Ok(Exit::Done)
}

fn print(context: &mut Context<'_>, units: &[(String, String)]) -> anyhow::Result<()> {
    if context.globals.json {
        let units: serde_json::Map<String, serde_json::Value> = units
            .iter()
            .map(|(name, text)| (name.clone(), text.as_str().into()))
            .collect();
        return super::json(context, &json!({ "units": units }));
    }
    for (i, (name, text)) in units.iter().enumerate() {
        if i > 0 {
            context.console.line("")?;
        }
        context.console.line(&format!("# {name}"))?;
        context.console.line(text.trim_end())?;
    }
    Ok(())
}

/// The folder of the store with `-backups` behind its name.
fn beside(store: &Path) -> PathBuf {
    let mut path = store.to_owned().into_os_string();
    path.push("-backups");
    path.into()
}

/// The path as far as it exists without links, and the rest as it is.
fn resolved(path: &Path) -> PathBuf {
    let exists = path
        .ancestors()
        .find_map(|there| Some((there, fs::canonicalize(there).ok()?)));
    match exists {
        Some((there, real)) => match path.strip_prefix(there) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
        None => path.to_owned(),
    }
}

/// Where the disk is mounted on which a folder is or would be. None: it is the
/// one that the system itself is on, which is always there.
#[cfg(unix)]
fn mount_point(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let disk = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
    let mut there = path.ancestors().find(|path| path.exists())?;
    while let Some(above) = there.parent() {
        if disk(above) != disk(there) {
            return Some(there.to_owned());
        }
        there = above;
    }
    None
}

#[cfg(not(unix))]
fn mount_point(_: &Path) -> Option<PathBuf> {
    None
}

fn jobs(backups: &str, disk: Option<String>, args: &ScheduleArgs) -> [Job; 4] {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let keep = args.keep_backups.to_string();
    [
        Job {
            name: "remora-prune",
            what: "Remove expired memories and old history",
            at: "02:30",
            words: words(&["prune"]),
            folder: None,
            disk: None,
        },
        Job {
            name: "remora-verify",
            what: "Check the memory store",
            at: "03:00",
            words: words(&["verify"]),
            folder: None,
            disk: None,
        },
        Job {
            name: "remora-backup",
            what: "Back the memory store up",
            at: "03:30",
            words: words(&["backup", "--keep", &keep, "--", backups]),
            folder: Some(backups.to_owned()),
            disk,
        },
        Job {
            name: "remora-digest",
            what: "Say what was remembered in a day",
            at: "07:00",
            words: words(&[
                "digest",
                "--since",
                "1d",
                "--up-to",
                args.digest_up_to.name(),
            ]),
            folder: None,
            disk: None,
        },
    ]
}

/// The units by their names.
fn units(binary: &str, store: &str, jobs: &[Job]) -> Vec<(String, String)> {
    let mut units = Vec::new();
    for job in jobs {
        let mut line = format!(
            "{} {}",
            word(binary, false),
            word(&format!("--store={store}"), true)
        );
        for argument in &job.words {
            line.push(' ');
            line.push_str(&word(argument, true));
        }
        // A disk that is mounted late is waited for.
        let mut needs = format!("RequiresMountsFor={}", word(store, false));
        if let Some(folder) = &job.folder {
            needs.push_str(&format!(" {}", word(folder, false)));
        }
        if let Some(disk) = &job.disk
            && !disk.contains(char::is_control)
        {
            needs.push_str(&format!(
                "\nAssertPathIsMountPoint={}",
                disk.replace('%', "%%")
            ));
        }
        units.push((
            format!("{}.service", job.name),
            format!(
                "[Unit]\n\
                 Description={}\n\
                 {needs}\n\
                 \n\
                 [Service]\n\
                 Type=oneshot\n\
                 ExecStart={line}\n\
                 UMask=0077\n\
                 NoNewPrivileges=yes\n\
                 Nice=10\n\
                 IOSchedulingClass=idle\n",
                job.what
            ),
        ));
        units.push((
            format!("{}.timer", job.name),
            format!(
                "[Unit]\n\
                 Description={}, every day\n\
                 \n\
                 [Timer]\n\
                 OnCalendar=*-*-* {}:00\n\
                 RandomizedDelaySec=10min\n\
                 Persistent=true\n\
                 \n\
                 [Install]\n\
                 WantedBy=timers.target\n",
                job.what, job.at
            ),
        ));
    }
    units
}

/// A word of a unit's command line, as systemd.service(5) reads it: `%` and (but
/// in the program's own name) `$` stand for something unless they are doubled.
fn word(text: &str, variables: bool) -> String {
    let mut word = String::with_capacity(text.len().saturating_add(2));
    word.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                word.push('\\');
                word.push(c);
            }
            '%' => word.push_str("%%"),
            '$' if variables => word.push_str("$$"),
            c if c.is_control() => {
                // By its bytes.
                for byte in c.to_string().bytes() {
                    word.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => word.push(c),
        }
    }
    word.push('"');
    word
}

fn unit_folder() -> Result<PathBuf, Error> {
    let strategy = Xdg::new().map_err(|error| {
        Error::invalid(
            format!("There is no folder for settings: {error}"),
            "systemd reads a user's units in ~/.config/systemd/user",
            "Set HOME or XDG_CONFIG_HOME, or use --print",
        )
    })?;
    Ok(strategy.config_dir().join("systemd").join("user"))
}

fn unicode(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::invalid(
            format!("The path {} is not Unicode", path.display()),
            "systemd's units are Unicode text",
            "Move it, or link to it from a path that is",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_to_systemd_what_it_says_here() {
        assert_eq!(word("/a b/remora", false), r#""/a b/remora""#);
        assert_eq!(word("50%", true), r#""50%%""#);
        assert_eq!(word("$HOME", true), r#""$$HOME""#);
        assert_eq!(word("/$x/remora", false), r#""/$x/remora""#);
        assert_eq!(word(r#"a"b\c"#, true), r#""a\"b\\c""#);
        assert_eq!(word("a\nb", true), r#""a\x0ab""#);
    }

    #[cfg(unix)]
    #[test]
    fn a_disk_is_found_where_it_is_mounted() {
        assert_eq!(mount_point(Path::new("/")), None);
        // What is mounted there is no disk, and mounted all the same.
        #[cfg(target_os = "linux")]
        assert_eq!(
            mount_point(Path::new("/proc/self/not there")),
            Some(PathBuf::from("/proc"))
        );
    }

    #[test]
    fn each_job_is_a_service_and_a_daily_timer() {
        let job = Job {
            name: "remora-x",
            what: "Do x",
            at: "01:02",
            words: vec!["x".to_owned(), "y z".to_owned()],
            folder: Some("/back ups".to_owned()),
            disk: Some("/50%".to_owned()),
        };
        let units = units("/bin/remora", "/st ore", &[job]);
        let names: Vec<&str> = units.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["remora-x.service", "remora-x.timer"]);
        let service = &units[0].1;
        assert!(
            service.contains("\nExecStart=\"/bin/remora\" \"--store=/st ore\" \"x\" \"y z\"\n"),
            "{service}"
        );
        assert!(
            service.contains("\nRequiresMountsFor=\"/st ore\" \"/back ups\"\n"),
            "{service}"
        );
        assert!(
            service.contains("\nAssertPathIsMountPoint=/50%%\n"),
            "{service}"
        );
        assert!(units[1].1.contains("\nOnCalendar=*-*-* 01:02:00\n"));
    }
}
