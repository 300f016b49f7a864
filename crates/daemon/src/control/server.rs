//! The daemon's side of the control socket.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use foreread_sys::user::{User, may_know};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::wire::{self, Answer, MOST_QUESTION, PROTOCOL, SAVING, Said, Subject};
use crate::{Answer as Told, Ask, Desk, Predicted, Status};

/// Clients served at the same time.
pub(super) const CLIENTS: usize = 16;
/// Clients of one user served at the same time, except root and the daemon's own user.
const OF_ONE: usize = 3;
/// Time for a client to ask, and to read its answer.
const CLIENT: Duration = Duration::from_secs(2);
/// Time for the loop's answer.
const LOOP: Duration = Duration::from_secs(5);

/// The socket, served until this is dropped.
pub struct Server {
    path: PathBuf,
    /// The socket's inode: its file is removed only if it is still this one.
    inode: u64,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    seats: Arc<Seats>,
}

impl Server {
    /// Listens at `path`. An existing socket counts as left behind: the caller has the [`Lock`](super::Lock) of this place.
    ///
    /// # Errors
    /// If no socket can be created, or another kind of file is there, which stays.
    pub fn start(path: &Path, desk: Desk) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Ok(about) if about.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => {
                let why = "something other than a socket is there, and is not replaced";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        // Everybody may ask root's daemon for its status; other answers depend on the user.
        let root = rustix::process::geteuid().is_root();
        let mode = if root { 0o666 } else { 0o600 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        listener.set_nonblocking(true)?;
        let inode = std::fs::symlink_metadata(path)?.ino();
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let seats = Arc::new(Seats::default());
        let accept = {
            let (until, seats) = (Arc::clone(&end), Arc::clone(&seats));
            move || accept(&listener, &desk, &until, &seats)
        };
        let thread = std::thread::Builder::new().name("control".to_owned());
        Ok(Self {
            path: path.to_path_buf(),
            inode,
            end,
            thread: Some(thread.spawn(accept)?),
            seats,
        })
    }

    /// Creates the folder of a socket, if it does not exist. Its parent must exist.
    ///
    /// # Errors
    /// If it cannot be made; the error names the folder.
    pub fn make_folder(path: &Path) -> io::Result<()> {
        let folder = folder_of(path);
        match std::fs::DirBuilder::new().mode(0o755).create(folder) {
            Err(why) if why.kind() != io::ErrorKind::AlreadyExists => Err(named(folder, &why)),
            _ => Ok(()),
        }
    }

    /// Checks that the folder of a socket exists, and that no other user can put a file there.
    ///
    /// # Errors
    /// If it does not exist, or another user can; the error names the folder.
    pub fn check_folder(path: &Path) -> io::Result<()> {
        let folder = folder_of(path);
        let about = std::fs::symlink_metadata(folder).map_err(|why| named(folder, &why))?;
        let own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
        if !own || about.mode() & 0o022 != 0 {
            let why = format!(
                "{}: other users can write to this folder, or it is theirs",
                folder.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn named(folder: &Path, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("{}: {why}", folder.display()))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A client that has asked is answered before the process ends.
        self.seats.wait(CLIENT);
        if std::fs::symlink_metadata(&self.path).is_ok_and(|about| about.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Number of clients by user.
#[derive(Default)]
struct Seats {
    of: Mutex<HashMap<u32, usize>>,
    emptied: Condvar,
}

/// A client's place among them.
struct Seat {
    seats: Arc<Seats>,
    uid: u32,
}

impl Seats {
    /// Waits until no client is left, or for so long.
    fn wait(&self, patience: Duration) {
        let seats = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        // If some are left, nothing more can be done.
        let _ = self
            .emptied
            .wait_timeout_while(seats, patience, |seats| !seats.is_empty());
    }

    /// A place for another client of this user, if there is one. A quarter is reserved for users who may do everything.
    fn sit(self: &Arc<Self>, uid: u32) -> Option<Seat> {
        let mut seats = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = seats.values().sum();
        let of_one = seats.get(&uid).copied().unwrap_or(0);
        let (most, most_of_one) = match may_do_all(uid) {
            true => (CLIENTS, CLIENTS),
            false => (CLIENTS * 3 / 4, OF_ONE),
        };
        if all >= most || of_one >= most_of_one {
            return None;
        }
        *seats.entry(uid).or_default() += 1;
        Some(Seat {
            seats: Arc::clone(self),
            uid,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.seats.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = seats.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                seats.remove(&self.uid);
            }
        }
        if seats.is_empty() {
            self.seats.emptied.notify_all();
        }
    }
}

/// Accepts clients, until the end. A client without a place is turned away.
fn accept(listener: &UnixListener, desk: &Desk, end: &OwnedFd, seats: &Arc<Seats>) {
    loop {
        let mut ready = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        let _ = poll(&mut ready, None);
        if !ready[1].revents().is_empty() {
            return;
        }
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                // No descriptor is left, say: the client stays in the queue, which must not keep this thread busy.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let Ok(user) = User::at(stream.as_fd()) else {
            continue;
        };
        let Some(seat) = seats.sit(user.uid) else {
            refuse(&stream, "too many clients; ask again");
            continue;
        };
        let desk = desk.clone();
        let thread = std::thread::Builder::new().name("client".to_owned());
        // Without a thread there is no answer, and the client sees its connection closed.
        let _ = thread.spawn(move || {
            let said = answer(&stream, &user, &desk);
            tell(&stream, said);
            drop(seat);
        });
    }
}

/// Sends the reason for refusing. A few bytes: the socket has room for them.
fn refuse(stream: &UnixStream, why: &str) {
    let why = why.to_owned();
    tell(stream, Said::Refused { why });
}

/// Writes the answer, after which the connection is closed. Unread bytes of the client would reset the connection on closing, and the
/// answer would be lost, so they are read, as many as the socket holds, and no more are accepted.
fn tell(mut stream: &UnixStream, said: Said) {
    let _ = stream.shutdown(Shutdown::Read);
    let mut rest = [0; 4096];
    while stream.read(&mut rest).is_ok_and(|bytes| bytes > 0) {}
    let _ = wire::write(stream, &signed(said).encode(), CLIENT);
}

fn signed(said: Said) -> Answer {
    Answer {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        said,
    }
}

/// True if this user may know everything and stop the daemon.
fn may_do_all(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Reads a client's question, and finds the part of the answer that it may know.
fn answer(stream: &UnixStream, user: &User, desk: &Desk) -> Said {
    let refused = |why: &str| Said::Refused {
        why: why.to_owned(),
    };
    let asked = match wire::read(stream, MOST_QUESTION, CLIENT) {
        Ok(bytes) => Subject::decode(&bytes),
        Err(why) => Err(format!("no question: {why}")),
    };
    let all = may_do_all(user.uid);
    let ask = match asked {
        Err(why) => return refused(&why),
        Ok(Subject::Status) => Ask::Status,
        Ok(Subject::Environment) if !all => return refused("it observes none of your programs"),
        Ok(Subject::Environment) => Ask::Environment,
        Ok(Subject::Stop) if !all => return refused("only root may stop it"),
        Ok(Subject::Stop) => Ask::Stop,
        Ok(Subject::Predict { path }) => {
            // A file that the user may not know gets the same answer as an unknown one.
            if !all && !knows(user, &[&path]).is_some_and(|known| known[0]) {
                return Said::Predicted { files: Vec::new() };
            }
            Ask::Predict {
                path,
                uid: user.uid,
            }
        }
    };
    let patience = if ask == Ask::Stop { SAVING } else { LOOP };
    match desk.ask(ask, patience) {
        None => refused("it is busy; ask again"),
        Some(Told::Stopping(unsaved)) => Said::Stopping { unsaved },
        Some(Told::Environment(variable)) => Said::Environment {
            variable: variable.map(|(name, value)| (name.to_owned(), value)),
        },
        Some(Told::Status(status)) => {
            let status = if all {
                status
            } else {
                of_user(status, user.uid)
            };
            Said::Status { status }
        }
        Some(Told::Predicted(files)) => {
            let files = if all { files } else { of_knower(files, user) };
            let files = files.into_iter().map(Into::into).collect();
            Said::Predicted { files }
        }
    }
}

/// The part of the status for everybody, and the user's own programs.
fn of_user(mut status: Box<Status>, uid: u32) -> Box<Status> {
    status.programs.retain(|program| program.uid == uid);
    // They name files.
    status.problems.clear();
    status.model.unsaved = None;
    status
}

/// The files that the user may know of.
fn of_knower(files: Vec<Predicted>, user: &User) -> Vec<Predicted> {
    let paths: Vec<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    let Some(known) = knows(user, &paths) else {
        return Vec::new();
    };
    let known = files.into_iter().zip(known);
    known
        .filter_map(|(file, known)| known.then_some(file))
        .collect()
}

/// Whether a user may know each of these files; `None` if that cannot be found out, as by a daemon that is not root's.
fn knows(user: &User, paths: &[impl AsRef<Path> + Sync]) -> Option<Vec<bool>> {
    let look = || paths.iter().map(|path| may_know(path.as_ref())).collect();
    user.look(look).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::control::{AskError, ask};
    use crate::{Counter, Program, desk};

    /// A daemon's socket whose loop gives fixed answers.
    struct Lab {
        _folder: tempfile::TempDir,
        path: PathBuf,
        _server: Server,
    }

    fn lab(mut answers: impl FnMut(Ask) -> Told + Send + 'static) -> Lab {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run/socket");
        let (desk, mut counter) = desk().expect("a desk");
        Server::make_folder(&path).expect("a folder");
        Server::check_folder(&path).expect("a folder of one's own");
        let server = Server::start(&path, desk).expect("a socket");
        std::thread::spawn(move || work(&mut counter, &mut answers));
        Lab {
            _folder: folder,
            path,
            _server: server,
        }
    }

    fn work(counter: &mut Counter, answers: &mut dyn FnMut(Ask) -> Told) {
        loop {
            let mut ready = [PollFd::from_borrowed_fd(counter.wait_fd(), PollFlags::IN)];
            let _ = poll(&mut ready, None);
            counter.answer(&mut *answers);
        }
    }

    fn status() -> Status {
        let program = |name: &str, uid| Program {
            name: name.to_owned(),
            uid,
            ..Program::default()
        };
        Status {
            events: 7,
            problems: vec!["/home/a/secret is damaged".to_owned()],
            programs: vec![program("own", 1000), program("other's", 1001)],
            ..Status::default()
        }
    }

    #[test]
    fn who_may_do_all_is_told_all_and_can_stop_it() {
        let lab = lab(|ask| match ask {
            Ask::Stop => Told::Stopping(None),
            _ => Told::Status(Box::new(status())),
        });
        let answer = ask(&lab.path, &Subject::Status).expect("an answer");
        let Said::Status { status: told } = answer.said else {
            panic!("{answer:?}");
        };
        assert_eq!((*told, answer.pid), (status(), std::process::id()));
        let answer = ask(&lab.path, &Subject::Stop).expect("an answer");
        assert_eq!(answer.said, Said::Stopping { unsaved: None });
    }

    #[test]
    fn others_are_told_the_sums_and_of_their_own_programs() {
        let told = of_user(Box::new(status()), 1000);
        let names: Vec<_> = told.programs.iter().map(|one| one.name.as_str()).collect();
        assert_eq!((names, told.events), (vec!["own"], 7));
        assert!(told.problems.is_empty());
        assert!(of_user(Box::new(status()), 5).programs.is_empty());
    }

    #[test]
    fn a_user_is_told_only_of_files_that_the_user_may_know_of() {
        let file = |path: &str| Predicted {
            path: path.into(),
            likelihood: 1.0,
            ahead: 1,
        };
        let files = vec![file("/etc/passwd"), file("/etc/shadow"), file("/none")];
        let nobody = User {
            pid: 1,
            uid: 65_534,
            gid: 65_534,
            groups: Vec::new(),
        };
        let told = of_knower(files.clone(), &nobody);
        if rustix::process::geteuid().is_root() {
            assert_eq!(told, files[..1]);
        } else {
            // Without this knowledge nothing is told.
            assert_eq!(told, []);
        }
    }

    #[test]
    fn clients_that_are_slow_or_talk_nonsense_hold_nobody_up() {
        let lab = lab(|_| Told::Status(Box::new(status())));
        let connect = || UnixStream::connect(&lab.path).expect("a socket");
        // Silent, in the middle of a question, gone, too long, and no question at all.
        let silent: Vec<_> = (0..CLIENTS - 2).map(|_| connect()).collect();
        let mut half = connect();
        half.write_all(&[9, 0, 0, 0, b'{']).expect("room");
        drop(connect());
        let mut said = Vec::new();
        let mut long = connect();
        // Turned away already, perhaps.
        let _ = long.write_all(&u32::MAX.to_le_bytes());
        long.read_to_end(&mut said).expect("an answer");
        assert!(String::from_utf8_lossy(&said).contains("refused"));
        let began = Instant::now();
        let mut answered = 0;
        while began.elapsed() < CLIENT * 10 && answered < 3 {
            match ask(&lab.path, &Subject::Status) {
                Ok(_) => answered += 1,
                // Clients beyond the limit are turned away with the reason.
                Err(AskError::Refused(why)) => assert!(why.contains("again"), "{why}"),
                Err(other) => panic!("{other}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(answered, 3);
        drop((silent, half));
    }

    #[test]
    fn a_refusal_reaches_a_client_that_has_said_more_than_is_read() {
        let lab = lab(|_| Told::Status(Box::new(status())));
        for _ in 0..50 {
            let mut client = UnixStream::connect(&lab.path).expect("a socket");
            let _ = client.write_all(&[0xff; 10_000]);
            let mut said = Vec::new();
            client.read_to_end(&mut said).expect("an answer");
            assert!(String::from_utf8_lossy(&said).contains("refused"));
        }
    }

    #[test]
    fn a_user_without_rights_cannot_take_all_the_seats() {
        let seats = Arc::new(Seats::default());
        let others: Vec<_> = (1000..1100)
            .flat_map(|uid| (0..10).map(move |_| uid))
            .filter_map(|uid| seats.sit(uid))
            .collect();
        assert!(others.len() < CLIENTS);
        let of_one = others.iter().filter(|seat| seat.uid == 1000).count();
        assert_eq!(of_one, OF_ONE);
        let root: Vec<_> = (0..CLIENTS).filter_map(|_| seats.sit(0)).collect();
        assert_eq!(root.len() + others.len(), CLIENTS);
        drop((others, root));
        assert!(seats.of.lock().expect("nobody panicked").is_empty());
    }

    #[test]
    fn who_has_asked_is_answered_before_the_server_has_ended() {
        let (saving, begun) = std::sync::mpsc::channel();
        let is_saved = Arc::new(AtomicBool::new(false));
        let saved = Arc::clone(&is_saved);
        let lab = lab(move |_| {
            saving.send(()).expect("the test waits");
            std::thread::sleep(CLIENT / 4);
            saved.store(true, Ordering::Relaxed);
            Told::Stopping(Some("the disk is full".to_owned()))
        });
        let path = lab.path.clone();
        let asked = std::thread::spawn(move || ask(&path, &Subject::Stop));
        begun.recv().expect("it is asked");
        drop(lab);
        assert!(is_saved.load(Ordering::Relaxed), "nobody waited");
        let answer = asked.join().expect("it ends").expect("an answer");
        let unsaved = Some("the disk is full".to_owned());
        assert_eq!(answer.said, Said::Stopping { unsaved });
    }

    #[test]
    fn the_socket_goes_with_the_server_and_a_stale_one_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        drop(UnixListener::bind(&path).expect("a socket"));
        let (desk, _counter) = desk().expect("a desk");
        let server = Server::start(&path, desk).expect("replaced");
        assert!(path.exists());
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path(), mode(0o777)).expect("its mode");
        assert!(Server::check_folder(&path).is_err());
        std::fs::set_permissions(folder.path(), mode(0o755)).expect("its mode");
        Server::check_folder(&path).expect("of this user alone");
    }

    #[test]
    fn one_folder_is_made_for_a_socket_and_none_above_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foreread/socket");
        Server::check_folder(&path).expect_err("there is none");
        Server::make_folder(&path).expect("made");
        Server::make_folder(&path).expect("there already");
        Server::check_folder(&path).expect("of this user alone");
        let deeper = folder.path().join("x/y/socket");
        let why = Server::make_folder(&deeper).expect_err("the folder above is missing");
        let named = deeper.parent().expect("a folder").display().to_string();
        assert!(why.to_string().starts_with(&named), "{why}");
        assert!(!folder.path().join("x").exists());
    }
}
