//! Real etcd servers, of one member and of several.
#![allow(clippy::disallowed_methods, reason = "real processes are what is tested")]

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use freshet_etcd::{EtcdOptions, EtcdStore};

/// Never reached when all is well.
const START_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A server with a folder and ports of its own.
pub struct EtcdServer {
    folder: PathBuf,
    name: String,
    endpoint: String,
    peer: String,
    /// All members with their addresses, in the form of etcd's `--initial-cluster`.
    cluster: String,
    process: Option<Child>,
}

/// The server that tests share which leave it running.
pub fn shared() -> &'static EtcdServer {
    static SERVER: OnceLock<EtcdServer> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        // A thread that stays: the server is killed with the thread that started it.
        std::thread::spawn(move || {
            sender.send(EtcdServer::start("shared")).unwrap();
            loop {
                std::thread::park();
            }
        });
        receiver.recv().unwrap()
    })
}

impl EtcdServer {
    /// Starts an empty one. `name` is of one test.
    pub fn start(name: &str) -> Self {
        let [server] = Self::start_members(name);
        server
    }

    /// Starts the members of an empty one.
    pub fn start_members<const N: usize>(name: &str) -> [Self; N] {
        let addresses = [(); N].map(|()| free_addresses());
        let names: [_; N] = std::array::from_fn(|n| format!("{name}-{n}"));
        let named = names.iter().zip(&addresses);
        let all: Vec<_> = named.map(|(name, [_, peer])| format!("{name}={peer}")).collect();
        let mut members = names.into_iter().zip(addresses).map(|(name, [endpoint, peer])| {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("etcd-{name}"));
            let _ = fs::remove_dir_all(&folder);
            let cluster = all.join(",");
            let mut server = Self { folder, name, endpoint, peer, cluster, process: None };
            server.resume();
            server
        });
        std::array::from_fn(|_| members.next().unwrap())
    }

    /// Starts it again, with what it had.
    pub fn resume(&mut self) {
        use std::os::unix::process::CommandExt;
        let Self { folder, name, endpoint, peer, cluster, .. } = self;
        let mut command = Command::new("etcd");
        command
            .args(["--name", name, "--data-dir", folder.to_str().unwrap(), "--unsafe-no-fsync"])
            .args(["--listen-client-urls", endpoint, "--advertise-client-urls", endpoint])
            .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
            .args(["--initial-cluster", cluster, "--log-level", "error"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // SAFETY: one system call, which is safe between fork and exec.
        #[allow(unsafe_code, reason = "so that no server outlives a test that is killed")]
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let spawned = command.spawn();
        self.process = Some(spawned.expect("etcd on PATH: .ci/setup builds it into .tools/bin"));
    }

    /// Ends it as a loss of its machine does.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Has it do nothing. Behind this, none of its threads runs.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
        let mut status = 0;
        // SAFETY: waits for a child of ours, whose end it leaves to its owner.
        #[allow(unsafe_code, reason = "the standard library waits for the end only")]
        let stopped = unsafe { libc::waitpid(self.pid(), &raw mut status, libc::WUNTRACED) };
        assert!(stopped == self.pid() && libc::WIFSTOPPED(status), "{stopped} {status}");
    }

    /// Has it go on behind a pause.
    pub fn unpause(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: a signal to a child of ours.
        #[allow(unsafe_code, reason = "the standard library sends no other signal than SIGKILL")]
        let sent = unsafe { libc::kill(self.pid(), signal) };
        assert_eq!(sent, 0);
    }

    fn pid(&self) -> libc::pid_t {
        i32::try_from(self.process.as_ref().unwrap().id()).unwrap()
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A part of its keys that nobody else uses.
    pub fn options(&self) -> EtcdOptions {
        static ROOTS: AtomicU32 = AtomicU32::new(0);
        EtcdOptions {
            endpoints: vec![self.endpoint.clone()],
            root: format!("root-{}/", ROOTS.fetch_add(1, Ordering::Relaxed)),
            user: None,
            tls: None,
            request_timeout: START_LIMIT,
        }
    }

    /// A store of these options, as soon as the server answers.
    pub async fn store(&self, options: &EtcdOptions) -> EtcdStore {
        let opened = async {
            loop {
                match EtcdStore::open(options.clone()).await {
                    Ok(store) => return store,
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        };
        tokio::time::timeout(START_LIMIT, opened).await.unwrap()
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn free_addresses() -> [String; 2] {
    // Both at once, so that they differ.
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| format!("http://{}", listener.local_addr().unwrap()))
}
