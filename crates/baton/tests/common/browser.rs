//! Controls a page in Chromium by its debugging protocol over pipes. Each message is JSON, followed by a zero byte.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser with one page, closed when dropped.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
    session: Option<String>,
}

impl Browser {
    /// Opens a page. The browser stores its profile in `folder`.
    pub fn open(page: &Path, folder: &Path) -> Self {
        // The browser receives messages on descriptor 3 and sends them on descriptor 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
            ])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--remote-debugging-pipe", "--window-size=1280,900"])
            .arg(format!(
                "--user-data-dir={}",
                folder.join("profile").display()
            ))
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut browser = Self {
            process,
            to,
            from,
            asked: 0,
            session: None,
        };
        let url = format!("file://{}", page.display());
        let target = browser.call("Target.createTarget", json!({ "url": url }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser
    }

    /// Calls a method of the protocol and returns its result. Ignores events that arrive in the meantime.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("the browser reads");
        loop {
            let mut answer = Vec::new();
            self.from
                .read_until(0, &mut answer)
                .expect("the browser writes");
            assert_eq!(answer.pop(), Some(0), "the browser ended");
            let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
            if answer["id"] == self.asked {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
        }
    }

    /// Evaluates a script, and returns its value or, if that is a promise, what it resolves to.
    #[track_caller]
    pub fn evaluate(&mut self, script: &str) -> Value {
        let script = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let mut made = self.call("Runtime.evaluate", script);
        assert!(made.get("exceptionDetails").is_none(), "{made}");
        made["result"]["value"].take()
    }

    /// Waits until a script evaluates to `true`.
    #[track_caller]
    pub fn wait_until(&mut self, condition: &str) {
        for _ in 0..1200 {
            if self.evaluate(condition) == true {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let state = self.evaluate("document.querySelector('main')?.innerText.slice(-2000)");
        panic!("not within a minute: {condition}\n{state}");
    }

    /// Presses a key in the focused element.
    pub fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
