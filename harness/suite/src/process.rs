//! Readers under test in a process of their own, which may do their worst.
//!
//! The runner owns time, memory and output: a subject that hangs is killed, one that dies is started
//! again for the next case, and what it writes is bounded.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gguf_assay_format::{ByteOrder, escape};

use crate::protocol::{Described, Given, PROTOCOL, Request, Response, hex};
use crate::{
    About, Answer, Channel, CheckpointQuestion, DequantizeRequest, NamesRequest, ReadRequest,
};

/// How to start an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set on top of the environment.
    pub env: Vec<(String, String)>,
    /// The folder to start it in.
    pub dir: Option<PathBuf>,
}

/// What a subject may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// For one answer.
    pub time: Duration,
    /// For the start (imports, just-in-time compilation), and for an answer about a large file.
    pub start: Duration,
    /// Memory on top of what the subject has after its start, in bytes.
    pub memory: u64,
    /// How memory is counted.
    pub memory_kind: MemoryKind,
    /// The longest answer, in bytes.
    pub output: u64,
}

/// How memory is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Address space, by the operating system's own limit (Linux): an allocation too large fails.
    #[default]
    AddressSpace,
    /// Resident memory, looked at every few milliseconds (Linux): for runtimes that reserve far more
    /// address space than they use, such as Node.js.
    Resident,
}

impl Default for Bounds {
    /// 5 s an answer, 60 s to start, 2 GiB, 256 MiB of output.
    fn default() -> Bounds {
        Bounds {
            time: Duration::from_secs(5),
            start: Duration::from_secs(60),
            memory: 2 << 30,
            memory_kind: MemoryKind::AddressSpace,
            output: 256 << 20,
        }
    }
}

/// How often resident memory is looked at.
const WATCH: Duration = Duration::from_millis(10);

/// How much of standard error is kept, from its end.
const STDERR_KEPT: usize = 16 << 10;

/// A subject in a process of its own.
#[derive(Debug)]
pub struct Process {
    program: Program,
    bounds: Bounds,
    about: About,
    running: Option<Running>,
    next_id: u64,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Line>,
    /// Closed when standard error is.
    stderr_open: Receiver<()>,
    resident_limit: Option<u64>,
}

/// What the thread that reads standard output found.
#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Why there is no line.
enum Silence {
    Time,
    Memory(u64),
    Flood,
    Ended,
}

impl Process {
    /// Starts the adapter and asks it what it is.
    ///
    /// # Errors
    ///
    /// Why it could not be started, or how its answer departs from the protocol, with the end of
    /// what it wrote to standard error.
    pub fn start(program: Program, bounds: Bounds) -> Result<Process, String> {
        let mut process = Process {
            program,
            bounds,
            about: About::default(),
            running: None,
            next_id: 1,
            stderr: Arc::default(),
        };
        match process.describe() {
            Ok(about) => {
                process.about = about;
                Ok(process)
            }
            Err(error) => {
                let stderr = process.take_stderr();
                Err(if stderr.is_empty() { error } else { format!("{error}; {stderr}") })
            }
        }
    }

    /// Starts the process, and sets the memory limit once it has said what it is: what the start
    /// took does not count.
    fn describe(&mut self) -> Result<About, String> {
        let mut running = self.spawn()?;
        let request = Request::Describe { protocol: PROTOCOL };
        let answer = running.ask(&request, self.bounds.start).map_err(|silence| {
            let how = match silence {
                Silence::Time => "no answer in time".into(),
                Silence::Memory(bytes) => format!("it took {bytes} bytes of memory"),
                Silence::Flood => "an answer without end".into(),
                Silence::Ended => running.end(),
            };
            format!("the adapter did not answer `describe`: {how}")
        })?;
        let described: Described = serde_json::from_slice(&answer).map_err(|e| {
            let shown = escape(&answer, 200);
            format!("the answer to `describe` is not of the protocol: {e}: {shown}")
        })?;
        if described.protocol != PROTOCOL {
            return Err(format!("the adapter speaks protocol {}", described.protocol));
        }
        running.limit_memory(&self.bounds);
        self.running = Some(running);
        Ok(described.about)
    }

    fn spawn(&self) -> Result<Running, String> {
        let Program { program, args, env, dir } = &self.program;
        let mut command = Command::new(program);
        command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
        if let Some(dir) = dir {
            command.current_dir(dir);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            command.spawn().map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the process has no pipes".into());
        };

        let (sender, lines) = sync_channel(16);
        let most = self.bounds.output;
        thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                let read =
                    reader.by_ref().take(most.saturating_add(1)).read_until(b'\n', &mut line);
                let message = match read {
                    Ok(0) => return,
                    Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 > most => {
                        Line::TooLong
                    }
                    Ok(_) => Line::Text(line),
                    Err(_) => return,
                };
                let last = !matches!(message, Line::Text(_));
                if sender.send(message).is_err() || last {
                    return;
                }
            }
        });
        let kept = Arc::clone(&self.stderr);
        let (open, stderr_open) = sync_channel(0);
        thread::spawn(move || {
            // Dropped with this thread, which closes the channel.
            let _open: SyncSender<()> = open;
            let mut reader = stderr;
            let mut chunk = [0; 4096];
            while let Ok(len @ 1..) = reader.read(&mut chunk) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&chunk[..len]);
                let excess = kept.len().saturating_sub(STDERR_KEPT);
                kept.drain(..excess);
            }
        });
        Ok(Running { child, stdin, lines, stderr_open, resident_limit: None })
    }

    /// Sends a request and has the answer parsed.
    fn ask(
        &mut self,
        request: impl FnOnce(u64) -> Request,
        time: Duration,
        parse: impl FnOnce(Response) -> Result<Answer, String>,
    ) -> Answer {
        if self.running.is_none()
            && let Err(error) = self.describe()
        {
            return Answer::Crashed(error);
        }
        let Some(running) = &mut self.running else {
            return Answer::Crashed("the process is gone".into());
        };
        let id = self.next_id;
        self.next_id += 1;
        let start = Instant::now();
        match running.ask(&request(id), time) {
            Ok(answer) => match response(&answer, id).and_then(parse) {
                Ok(answer) => answer,
                // Out of step, or out of its mind: start anew for the next case.
                Err(error) => {
                    self.stop();
                    Answer::Crashed(format!("{error}: {}", escape(&answer, 200)))
                }
            },
            Err(Silence::Time) => {
                self.stop();
                let limit = time.as_secs_f32();
                Answer::TimedOut(format!("no answer within {limit} s"))
            }
            Err(Silence::Memory(bytes)) => {
                self.stop();
                Answer::OutOfMemory(format!("{} MiB resident", bytes >> 20))
            }
            Err(Silence::Flood) => {
                self.stop();
                Answer::Crashed(format!("an answer of more than {} bytes", self.bounds.output))
            }
            Err(Silence::Ended) => {
                let answer = match self.running.take() {
                    Some(mut running) => {
                        let status = running.wait(start + time);
                        running.hear_out();
                        self.death(status)
                    }
                    None => Answer::Crashed("the process is gone".into()),
                };
                self.stop();
                answer
            }
        }
    }

    /// What the end of the process says.
    fn death(&self, status: Option<ExitStatus>) -> Answer {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr: Vec<u8> = kept.iter().copied().collect();
        drop(kept);
        let stderr = String::from_utf8_lossy(&stderr);
        let how = match status {
            Some(status) => describe_status(status),
            None => "closed its output and went on".into(),
        };
        let out_of_memory =
            ["memory allocation of ", "MemoryError", "bad_alloc", "heap out of memory"];
        if out_of_memory.iter().any(|words| stderr.contains(words)) {
            Answer::OutOfMemory(how)
        } else if status.and_then(|status| status.code()) == Some(101) {
            let panic = stderr.find("panicked at").map(|at| &stderr[at..]);
            let words: Vec<&str> = panic.unwrap_or_default().lines().take(2).collect();
            Answer::Panicked(without_registry(&words.join(" ")))
        } else {
            Answer::Crashed(how)
        }
    }

    fn stop(&mut self) {
        self.running = None;
    }
}

/// The answer to the request with this id.
fn response(answer: &[u8], id: u64) -> Result<Response, String> {
    let response: Response = serde_json::from_slice(answer).map_err(|e| off_protocol(&e))?;
    if response.id != id {
        return Err(format!("the answer is to request {}, not {id}", response.id));
    }
    Ok(response)
}

fn off_protocol(error: &dyn std::fmt::Display) -> String {
    format!("the answer is not of the protocol: {error}")
}

/// A panic's text without where cargo keeps its sources on this machine:
/// `candle-core-0.11.1/src/…` instead of a path through somebody's home.
fn without_registry(text: &str) -> String {
    const REGISTRY: &str = ".cargo/registry/src/";
    let Some(at) = text.find(REGISTRY) else { return text.into() };
    let start = text[..at].rfind(' ').map_or(0, |space| space + 1);
    let rest = &text[at + REGISTRY.len()..];
    let package = rest.split_once('/').map_or(rest, |(_, package)| package);
    format!("{}{package}", &text[..start])
}

fn describe_status(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => " (SIGILL)",
            6 => " (SIGABRT)",
            7 => " (SIGBUS)",
            8 => " (SIGFPE)",
            9 => " (SIGKILL)",
            11 => " (SIGSEGV)",
            _ => "",
        };
        return format!("ended by signal {signal}{name}");
    }
    match status.code() {
        Some(code) => format!("exited with status {code} without an answer"),
        None => "ended without an answer".into(),
    }
}

impl Running {
    fn ask(&mut self, request: &Request, time: Duration) -> Result<Vec<u8>, Silence> {
        let Ok(mut line) = serde_json::to_vec(request) else { return Err(Silence::Ended) };
        line.push(b'\n');
        // Requests are far smaller than a pipe's buffer, so this does not wait for the subject.
        if self.stdin.write_all(&line).and_then(|()| self.stdin.flush()).is_err() {
            return Err(Silence::Ended);
        }
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let wait = if self.resident_limit.is_some() { left.min(WATCH) } else { left };
            match self.lines.recv_timeout(wait) {
                Ok(Line::Text(line)) => return Ok(line),
                Ok(Line::TooLong) => return Err(Silence::Flood),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if let (Some(limit), Some(used)) =
                        (self.resident_limit, memory(self.child.id()).map(|m| m.resident))
                        && used > limit
                    {
                        return Err(Silence::Memory(used));
                    }
                    if left <= wait {
                        return Err(Silence::Time);
                    }
                }
            }
        }
    }

    fn limit_memory(&mut self, bounds: &Bounds) {
        let Some(now) = memory(self.child.id()) else { return };
        match bounds.memory_kind {
            MemoryKind::Resident => self.resident_limit = Some(now.resident + bounds.memory),
            MemoryKind::AddressSpace => {
                #[cfg(target_os = "linux")]
                {
                    use rustix::process::{Pid, Resource, Rlimit, prlimit};
                    let pid = Pid::from_raw(self.child.id() as i32);
                    let set = |resource, most| {
                        let limit = Rlimit { current: Some(most), maximum: Some(most) };
                        // A limit that cannot be set leaves the time limit.
                        let _ = prlimit(pid, resource, limit);
                    };
                    set(Resource::As, now.address_space + bounds.memory);
                    set(Resource::Core, 0);
                }
            }
        }
    }

    /// Waits for the end until the deadline.
    fn wait(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }

    /// Waits until the last words have arrived; a child of the subject may keep the pipe open.
    fn hear_out(&self) {
        let _ = self.stderr_open.recv_timeout(Duration::from_millis(500));
    }

    fn end(&mut self) -> String {
        let status = self.wait(Instant::now() + Duration::from_secs(1));
        self.hear_out();
        match status {
            Some(status) => describe_status(status),
            None => "it closed its output".into(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // The group is the subject's own; what it started goes with it.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Memory of a process in bytes.
struct Memory {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "limited on Linux only"))]
    address_space: u64,
    resident: u64,
}

fn memory(pid: u32) -> Option<Memory> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text.split(' ').map(|number| number.parse::<u64>().ok());
    let (address_space, resident) = (pages.next()??, pages.next()??);
    Some(Memory { address_space: address_space * PAGE, resident: resident * PAGE })
}

impl Channel for Process {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, request: &ReadRequest) -> Answer {
        let time = if request.large { self.bounds.start } else { self.bounds.time };
        let message = |id| Request::Read {
            id,
            path: request.path.display().to_string(),
            profile: request.profile.name().into(),
        };
        self.ask(message, time, |response| match response.into_read() {
            Ok(Ok(value)) => Ok(Answer::Value(Box::new(value))),
            Ok(Err(failure)) => Ok(Answer::Failure(failure)),
            Err(error) => Err(off_protocol(&error)),
        })
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Answer {
        let message = |id| Request::Dequantize {
            id,
            r#type: request.tensor_type.name.into(),
            hex: hex(&request.bytes),
            big_endian: request.byte_order == ByteOrder::Big,
        };
        self.ask(message, self.bounds.time, |response| match response.into_dequantize() {
            Ok(Ok(numbers)) => Ok(Answer::Numbers(numbers)),
            Ok(Err(failure)) => Ok(Answer::Failure(failure)),
            Err(error) => Err(off_protocol(&error)),
        })
    }

    fn map_names(&mut self, request: &NamesRequest) -> Answer {
        let message = |id| Request::MapNames {
            id,
            architecture: request.architecture.clone(),
            given: Given::of(&request.given),
        };
        self.ask(message, self.bounds.time, |response| match response.into_map_names() {
            Ok(Ok(value)) => Ok(Answer::Names(Box::new(value))),
            Ok(Err(failure)) => Ok(Answer::Failure(failure)),
            Err(error) => Err(off_protocol(&error)),
        })
    }

    fn checkpoint(&mut self, question: &CheckpointQuestion) -> Answer {
        let message = |id| match question {
            CheckpointQuestion::Judge(request) => Request::JudgeCheckpoint {
                id,
                path: request.path.display().to_string(),
                tp: request.tp,
            },
            CheckpointQuestion::Unpack(request) => Request::Unpack {
                id,
                path: request.path.display().to_string(),
                module: request.module.clone(),
            },
        };
        self.ask(message, self.bounds.time, |response| {
            let answer = match question {
                CheckpointQuestion::Judge(_) => response
                    .into_judge_checkpoint()
                    .map(|result| result.map(|value| Answer::Judged(Box::new(value)))),
                CheckpointQuestion::Unpack(_) => response
                    .into_unpack()
                    .map(|result| result.map(|value| Answer::Weight(Box::new(value)))),
            };
            match answer {
                Ok(answer) => Ok(answer.unwrap_or_else(Answer::Failure)),
                Err(error) => Err(off_protocol(&error)),
            }
        })
    }

    fn take_stderr(&mut self) -> String {
        let mut kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.drain(..).collect();
        let from = bytes.len().saturating_sub(400);
        let text = without_registry(&escape(bytes[from..].trim_ascii(), 400));
        if text.is_empty() { text } else { format!("stderr: {text}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_tell_where_home_is() {
        let text = "panicked at /home/me/.cargo/registry/src/index-1/candle-0.1/src/a.rs:1:2: no";
        assert_eq!(without_registry(text), "panicked at candle-0.1/src/a.rs:1:2: no");
        assert_eq!(without_registry("panicked at src/a.rs: no"), "panicked at src/a.rs: no");
    }
}
