//! Programs whose arguments need a reader of their own.

use super::reader::{Reader, shown};
use super::table::Row;
use super::word::{OPEN, Word};
use super::{git, net, run, web};
use crate::classify::Risk;

/// Reads the arguments of a program that its row does not describe.
pub(super) fn read(reader: &mut Reader, program: &str, row: &Row, arguments: &[Word], input: Option<&Word>) {
    match program {
        "git" => git::read(reader, arguments),
        "find" => find(reader, arguments),
        "sed" => sed(reader, arguments),
        "test" | "[" => test(reader, program, arguments),
        "xargs" | "gxargs" => run::xargs(reader, row, arguments),
        "parallel" | "watch" => run::joined(reader, program, arguments),
        "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "mksh" | "rbash" | "yash" | "fish" | "csh"
        | "tcsh" => {
            run::shell(reader, program, arguments, input);
        }
        "eval" => run::eval(reader, arguments),
        "su" | "runuser" | "script" | "flock" | "su-exec" | "gosu" | "setpriv" | "capsh" => {
            run::text_option(reader, program, arguments, input);
        }
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" | "docker-compose" | "lxc" | "incus" => {
            run::container(reader, program, arguments, input);
        }
        "ssh" | "slogin" | "autossh" | "mosh" | "sshpass" => net::ssh(reader, program, arguments, input),
        "curl" => web::curl(reader, arguments),
        "wget" => web::wget(reader, arguments),
        "scp" | "rsync" | "sftp" => net::copy(reader, program, arguments),
        "nc" | "ncat" | "netcat" | "telnet" => net::connect(reader, program, arguments),
        "mail" | "mailx" | "mutt" | "neomutt" | "sendmail" | "msmtp" => net::mail(reader, program, arguments),
        "unshare" | "nsenter" | "systemd-run" | "firejail" | "bwrap" | "strace" | "ltrace" | "proot"
        | "fakeroot" | "dbus-run-session" | "xvfb-run" | "rlwrap" | "unbuffer" | "valgrind" | "perf" => {
            super::wrap::guess(reader, arguments, input);
        }
        _ => reader.uncertain(|| format!("the arguments of {program} are not read")),
    }
}

/// `find`: its expression has actions among its tests.
fn find(reader: &mut Reader, arguments: &[Word]) {
    let mut words = arguments.iter().enumerate();
    let mut is_expression = false;
    reader.add(Risk::Read, || "find".to_owned());
    while let Some((at, word)) = words.next() {
        if word.may_hide_option() || word.may_match_option() {
            reader.paths.lose();
            reader.uncertain(|| "an argument of find may be any action".to_owned());
            continue;
        }
        let text = word.text.as_str();
        match text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                reader.paths.lose();
                reader.add(Risk::Execution, || format!("find {text}"));
                reader.command(&found_command(arguments, at + 1), None);
                is_expression = true;
            }
            "-delete" => {
                reader.paths.lose();
                reader.add(Risk::Delete, || "find -delete".to_owned());
            }
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                reader.add(Risk::LocalWrite, || format!("find {text}"));
                words.next().inspect(|(_, file)| reader.path(file));
            }
            _ if text.starts_with('-') || matches!(text, "(" | ")" | "!" | ",") => {
                is_expression = true;
                if !FIND_WORDS.contains(&text) && !FIND_VALUES.contains(&text) {
                    reader.uncertain(|| format!("find {} is not known", shown(text)));
                }
                if FIND_VALUES.contains(&text) {
                    let value = words.next();
                    if text.starts_with("-files0") || text.contains("newer") || text == "-samefile" {
                        value.inspect(|(_, file)| reader.path(file));
                    }
                }
            }
            _ if is_expression => (),
            _ => reader.path(word),
        }
    }
}

/// The command after `-exec`; where `{}` stands, anything may.
fn found_command(arguments: &[Word], from: usize) -> Vec<Word> {
    arguments
        .iter()
        .skip(from)
        .take_while(|word| !matches!(word.certain(), Some(";" | "+")))
        .map(|word| replaced(word, "{}"))
        .collect()
}

/// The word when whatever stands for `place` in it can be anything that begins a path.
pub(super) fn replaced(word: &Word, place: &str) -> Word {
    if place.is_empty() || !word.text.contains(place) {
        return word.clone();
    }
    Word {
        text: word.text.replace(place, &OPEN.to_string()),
        open: true,
        ..word.clone()
    }
}

const FIND_WORDS: [&str; 38] = [
    "(",
    ")",
    "!",
    ",",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-ls",
    "-true",
    "-false",
    "-empty",
    "-depth",
    "-d",
    "-daystart",
    "-follow",
    "-mount",
    "-xdev",
    "-H",
    "-L",
    "-P",
    "-E",
    "-X",
    "-x",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-noleaf",
    "-warn",
    "-nowarn",
    "-s",
];
const FIND_VALUES: [&str; 44] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-newermt",
    "-newerct",
    "-newerat",
    "-newermm",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-samefile",
    "-maxdepth",
    "-mindepth",
    "-printf",
    "-fstype",
    "-lname",
    "-ilname",
    "-used",
    "-context",
    "-D",
    "-O0",
    "-files0-from",
];

/// `sed`: harmless only when its script has nothing but addresses, printing, deleting lines and plain replacing.
fn sed(reader: &mut Reader, arguments: &[Word]) {
    let mut is_script_given = false;
    let mut words = arguments.iter();
    let mut only_operands = false;
    reader.add(Risk::Read, || "sed".to_owned());
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if word.may_hide_option() || (word.may_match_option() && !only_operands) {
            reader.paths.lose();
            reader.uncertain(|| "an argument of sed may be any option".to_owned());
        }
        match text {
            "--" => only_operands = true,
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
            | "--silent" | "--regexp-extended" | "--posix" | "--separate" | "--null-data"
                if !only_operands => {}
            "-e" | "--expression" if !only_operands => {
                is_script_given = true;
                sed_script(reader, words.next());
            }
            _ if text.starts_with('-') && text.len() > 1 && !only_operands => {
                is_script_given = true;
                reader.paths.lose();
                if text.starts_with("-i") || text.starts_with("--in") {
                    reader.add(Risk::LocalWrite, || "sed -i".to_owned());
                }
                reader.uncertain(|| format!("sed {}", shown(text)));
            }
            _ if !is_script_given => {
                is_script_given = true;
                sed_script(reader, Some(word));
            }
            _ => reader.path(word),
        }
    }
}

fn sed_script(reader: &mut Reader, script: Option<&Word>) {
    let is_harmless = script
        .filter(|word| !word.open && !word.splits)
        .is_some_and(|word| word.text.split(';').all(is_harmless_edit));
    if !is_harmless {
        reader.paths.lose();
        reader.uncertain(|| "a sed script that may do more than print".to_owned());
    }
}

/// Lines (`1,10`, `$`, `/plain/`) and `p`, `d`, `q`, `=`; or `s/plain/plain/` with harmless flags.
fn is_harmless_edit(edit: &str) -> bool {
    let edit = edit.trim_matches(' ');
    let is_plain = |text: &str| !text.contains(['\\', '\n', '/', '[', '{', '}', ';']);
    if let Some(parts) = edit.strip_prefix("s/") {
        let mut parts = parts.split('/');
        return match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(from), Some(to), Some(flags), None) => {
                is_plain(from)
                    && is_plain(to)
                    && flags
                        .chars()
                        .all(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | '0'..='9'))
            }
            _ => false,
        };
    }
    let command =
        edit.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '+' | '~' | '!'));
    if matches!(command, "p" | "d" | "q" | "=" | "") {
        return true;
    }
    command
        .strip_prefix('/')
        .and_then(|rest| rest.rsplit_once('/'))
        .is_some_and(|(pattern, end)| is_plain(pattern) && matches!(end, "p" | "d" | "q" | "="))
}

/// `test`: an index in a variable's name is evaluated, and evaluating can run commands.
fn test(reader: &mut Reader, program: &str, arguments: &[Word]) {
    if program == "[" && arguments.last().and_then(Word::certain) != Some("]") {
        reader.uncertain(|| "[ without ]".to_owned());
    }
    reader.add(Risk::Read, || "test".to_owned());
    for word in arguments {
        let is_evaluated = matches!(word.text.as_str(), "-v" | "-R") || word.text.contains(['$', '`']);
        let brackets = word.text.contains('[') && word.text.len() > 1;
        if word.splits || word.runs || is_evaluated || brackets || word.text.starts_with(OPEN) {
            reader.paths.lose();
            reader.uncertain(|| "what test evaluates is not certain".to_owned());
        }
        if word.text.contains('/') {
            reader.path(word);
        }
    }
    if !arguments
        .iter()
        .all(|word| word.text.contains('/') || is_test_word(&word.text))
    {
        reader.paths.lose();
    }
}

fn is_test_word(text: &str) -> bool {
    matches!(text, "]" | "!" | "=" | "==" | "!=" | "-a" | "-o") || text.starts_with('-')
}
