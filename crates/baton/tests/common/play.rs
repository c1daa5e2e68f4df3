//! Plays dialogues of a user with the program in a temporary folder: the files `dialogues/*.dialogue` beside the tests.
//!
//! | line | meaning |
//! |---|---|
//! | `file NAME TEXT`, `copy NAME PATH`, `keep NAME [FILE]` | makes a file of this text, of a file of the repository, or of what the last run printed or wrote |
//! | `append NAME TEXT` | appends a line to a file |
//! | `rewrite NAME LOG FROM..TO TEXT` | appends a line for each of these lines of a log: `{client}` and other names stand for parts of it |
//! | `$ ARGUMENTS` | a run that succeeds; quotes `'` hold an argument with spaces together |
//! | `columns N` | the runs that follow are in a terminal of this width |
//! | `fits ARGUMENTS` | runs in terminals of 60, 80 and 200 columns, and without one in 100, whose output fits |
//! | `refused ARGUMENTS => PARTS` | a run whose input is refused: it prints nothing, and its message has all parts |
//! | `fails CODE ARGUMENTS => PARTS` | a run that ends with this exit code, and the parts of its message |
//! | `says PARTS`, `never says PARTS` | what the last run printed |
//! | `tells PARTS`, `never tells PARTS`, `tells once PARTS`, `tells nothing` | what the last run wrote to standard error |
//! | `value FILE PATH OPERATOR VALUE` | a value in a file of JSON or TOML; the operators are `=`, `!=`, `<`, `>` and `has`, for the length of a list |
//! | `cells FILE COLUMNS = ROWS` | columns of a table whose cells contain no comma |
//! | `read FILE PARTS`, `begins FILE HEX`, `lines FILE NUMBER` | the content of a file |
//! | `same FILE FILE`, `differ FILE FILE` | whether two files are equal |
//! | `files NAMES` | all files |
//!
//! `|` separates parts and rows. `\n` stands for the end of a line, `FIXED` in a file for [`FIXED`], `SHORT` in arguments for [`SHORT`]. The file `-` is what the last run printed, and `FILE:PATH` a value.

use super::{FIXED, Ran, SHORT, Workbench, has, root};
use baton_testkit::dialogue::{Play, same, value};
use serde_json::Value;

pub struct Player {
    bench: Workbench,
    ran: Option<Ran>,
    /// Width of the terminal, if there is one.
    columns: Option<String>,
}

impl Default for Player {
    fn default() -> Self {
        Self {
            bench: Workbench::new(),
            ran: None,
            columns: None,
        }
    }
}

impl Play for Player {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            ["file", name, ref text @ ..] => {
                let text = text.join(" ").replace("FIXED", FIXED);
                let mut text = text.replace("\\n", "\n");
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                self.bench.write(name, &text);
                Ok(())
            }
            ["append", name, ref text @ ..] => {
                let before = self.bench.read(name);
                let text = before + &text.join(" ").replace("\\n", "\n") + "\n";
                self.bench.write(name, &text);
                Ok(())
            }
            ["columns", columns] => {
                self.columns = Some(columns.to_owned());
                Ok(())
            }
            ["fits", ref arguments @ ..] => {
                let arguments = arguments.join(" ");
                for (columns, most) in [
                    (Some("60"), 60),
                    (Some("80"), 80),
                    (Some("200"), 200),
                    (None, 100),
                ] {
                    self.columns = columns.map(str::to_owned);
                    self.run(&arguments).ok().fits(most);
                }
                Ok(())
            }
            ["rewrite", name, from, range, ref template @ ..] => {
                let (first, end) = range.split_once("..").ok_or("expected a range")?;
                let (first, end): (usize, usize) = (value(first)?, value(end)?);
                let log = self.bench.read(from);
                let lines = log.lines().enumerate().skip(first).take(end - first);
                let text: String = lines
                    .map(|(at, line)| rewritten(at, line, &template.join(" ")))
                    .collect();
                let before = match self.bench.files().iter().any(|file| file == name) {
                    true => self.bench.read(name),
                    false => String::new(),
                };
                self.bench.write(name, &(before + &text));
                Ok(())
            }
            ["copy", name, path] => {
                let copied = std::fs::copy(root().join(path), self.bench.path(name));
                copied.map(drop).map_err(|error| error.to_string())
            }
            ["$", ref arguments @ ..] => {
                let ran = self.run(&arguments.join(" "));
                let code = ran.code;
                self.ran = Some(ran);
                same(&Some(0), &code).map_err(|error| format!("{error}: {:?}", self.ran))
            }
            ["refused", ref rest @ ..] => {
                let rest = rest.join(" ");
                let (line, message) = rest.split_once(" => ").ok_or("expected `=> PARTS`")?;
                self.run(line).refused(&parts(message));
                Ok(())
            }
            ["fails", code, ref rest @ ..] => {
                let rest = rest.join(" ");
                let (line, message) = rest.split_once(" => ").ok_or("expected `=> PARTS`")?;
                let ran = self.run(line);
                let ran = self.ran.insert(ran);
                has(&ran.stderr, &parts(message));
                same(&Some(value(code)?), &ran.code)
            }
            _ => self.check(words),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Returns the texts that `|` separates.
fn parts(text: &str) -> Vec<&str> {
    text.split(" | ").map(str::trim).collect()
}

/// Returns the arguments in a line.
fn arguments(line: &str) -> Vec<String> {
    let line = line.replace("SHORT", &SHORT.join(" "));
    let mut arguments = Vec::new();
    for (index, text) in line.split('\'').enumerate() {
        match index % 2 {
            0 => arguments.extend(text.split_whitespace().map(str::to_owned)),
            _ => arguments.push(text.to_owned()),
        }
    }
    arguments
}

/// Fills a template with the number and the parts of a line in Combined Log Format.
fn rewritten(at: usize, line: &str, template: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let (client, rest) = line.split_once(' ').expect("a client");
    let (head, bytes) = line.rsplit_once(' ').expect("a size");
    let time = line.split(['[', ']']).nth(1).expect("a time");
    let fields = [
        ("{line}", line),
        ("{client}", client),
        ("{rest}", rest),
        ("{time}", time),
        ("{url}", words[6]),
        ("{status}", words[8]),
        ("{bytes}", bytes),
        ("{head}", head),
        ("{number}", &at.to_string()),
    ];
    let text = fields
        .iter()
        .fold(template.to_owned(), |text, (name, field)| {
            text.replace(name, field)
        });
    text + "\n"
}

/// Returns cells of a table, row by row.
fn cells(table: &str, columns: &[&str]) -> Vec<String> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let cell = |line: &str, name: &str| {
        let place = head.iter().position(|column| *column == name).expect(name);
        line.split(',').nth(place).expect("a cell").to_owned()
    };
    let row = |line: &str| {
        columns
            .iter()
            .map(|name| cell(line, name))
            .collect::<Vec<_>>()
            .join(" ")
    };
    lines.map(row).collect()
}

impl Player {
    fn run(&self, line: &str) -> Ran {
        let arguments = arguments(line);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = self.bench.command(&arguments);
        command.envs(self.columns.iter().map(|columns| ("COLUMNS", columns)));
        Ran::of(command.output().expect("the program starts"))
    }

    fn ran(&self) -> &Ran {
        self.ran.as_ref().expect("a run")
    }

    fn read(&self, file: &str) -> String {
        match file.split_once(':') {
            Some((file, path)) => self.value(file, path).to_string(),
            None if file == "-" => self.ran().stdout.clone(),
            None => self.bench.read(file),
        }
    }

    /// Returns the value at a path, whose parts are keys, positions and conditions for entries of a list, `[KEY=VALUE]`; null stands for
    /// none.
    fn value(&self, file: &str, path: &str) -> Value {
        let text = self.read(file);
        let toml = |_| toml::from_str(&text).expect("JSON or TOML");
        let all: Value = serde_json::from_str(&text).unwrap_or_else(toml);
        let found = path
            .split('.')
            .try_fold(&all, |value, part| match part.strip_prefix('[') {
                Some(conditions) => value.as_array()?.iter().find(|entry| {
                    let mut conditions = conditions.trim_end_matches(']').split(',');
                    conditions.all(|condition| {
                        let (key, expected) = condition.split_once('=').expect("KEY=VALUE");
                        entry[key] == expected
                    })
                }),
                None => value.pointer(&format!("/{part}")),
            });
        found.cloned().unwrap_or_default()
    }

    fn check(&mut self, words: &[&str]) -> Result<(), String> {
        let rest = |from: usize| words[from..].join(" ");
        match *words {
            ["keep", name] => self.bench.write(name, &self.ran().stdout),
            ["keep", name, file] => self.bench.write(name, &self.bench.read(file)),
            ["says", ..] => has(&self.ran().stdout, &parts(&rest(1))),
            ["tells", "nothing"] => same("", self.ran().stderr.as_str())?,
            ["tells", "once", ..] => {
                let told: Vec<&str> = self.ran().stderr.split_whitespace().collect();
                let (told, rest) = (told.join(" "), rest(2));
                let other = parts(&rest)
                    .into_iter()
                    .find(|part| told.matches(part).count() != 1);
                return other.map_or(Ok(()), |part| {
                    Err(format!("{part:?} is not once in:\n{told}"))
                });
            }
            ["tells", ..] => has(&self.ran().stderr, &parts(&rest(1))),
            ["never", what @ ("says" | "tells"), ..] => {
                let ran = self.ran();
                let text = if what == "says" {
                    &ran.stdout
                } else {
                    &ran.stderr
                };
                let rest = rest(2);
                let said = parts(&rest).into_iter().find(|part| text.contains(part));
                return said.map_or(Ok(()), |part| Err(format!("{part:?} is in:\n{text}")));
            }
            ["value", file, path, operator, ..] => {
                let (found, expected) = (self.value(file, path), rest(4));
                let text = found.to_string();
                let is_it = found.as_str() == Some(&expected) || text == expected;
                let holds = match operator {
                    "=" => is_it,
                    "!=" => !is_it,
                    "has" => found.as_array().map(Vec::len) == Some(value::<usize>(&expected)?),
                    "<" => found.as_f64() < Some(value(&expected)?) && found.is_number(),
                    ">" => found.as_f64() > Some(value(&expected)?),
                    _ => return Err("there is no such operator".to_owned()),
                };
                return if holds {
                    Ok(())
                } else {
                    Err(format!("found {found}"))
                };
            }
            ["cells", file, ref columns @ ..] => {
                let end = columns
                    .iter()
                    .position(|word| *word == "=")
                    .ok_or("expected `=`")?;
                let expected = columns[end + 1..].join(" ");
                return same(
                    &expected,
                    &cells(&self.read(file), &columns[..end]).join(" | "),
                );
            }
            ["read", file, ..] => has(&self.read(file), &parts(&rest(2))),
            ["begins", file, hex] => {
                let bytes = std::fs::read(self.bench.path(file)).expect("a file");
                let found: String = bytes[..hex.len() / 2]
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                return same(hex, &found);
            }
            ["lines", file, ">", number] => {
                let count = self.read(file).lines().count();
                return same(&true, &(count > value(number)?)).map_err(|_| count.to_string());
            }
            ["lines", file, number] => {
                return same(&value(number)?, &self.read(file).lines().count());
            }
            [how @ ("same" | "differ"), one, other] => {
                let [one, other] = [one, other].map(|file| self.read(file));
                let is_as_said = (one == other) == (how == "same");
                return if is_as_said {
                    Ok(())
                } else {
                    Err(format!("{one}\n---\n{other}"))
                };
            }
            ["files", ..] => return same(&rest(1), &self.bench.files().join(" ")),
            _ => return Err("there is no such line".to_owned()),
        }
        Ok(())
    }
}
