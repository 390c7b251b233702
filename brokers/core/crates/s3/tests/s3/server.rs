//! A real S3-compatible server, and a proxy on which requests fail as they do in data centres.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use bytes::Bytes;
use freshet_s3::open_bucket;
use freshet_world::env::files::write_private;
use freshet_world::env::real::SystemRandomness;
use freshet_world::env::store::ObjectStore;
use futures::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::RETRY_AFTER;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

const KEY: &str = "freshet";
const SECRET: &str = "freshet-secret";
/// Never reached when all is well.
const START_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A server with a folder and a port of its own.
pub struct S3Server {
    folder: PathBuf,
    address: String,
    process: Child,
}

/// The server of all tests.
pub fn shared() -> &'static S3Server {
    static SERVER: OnceLock<S3Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        // A thread that stays: the server is killed with the thread that started it.
        std::thread::spawn(move || {
            sender.send(S3Server::start()).unwrap();
            loop {
                std::thread::park();
            }
        });
        receiver.recv().unwrap()
    })
}

impl S3Server {
    fn start() -> Self {
        use std::os::unix::process::CommandExt;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("s3");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut command = Command::new("s3");
        command
            .args(["-listen", &address, "-data", folder.to_str().unwrap()])
            .envs([("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)])
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
        let process = command.spawn().expect("s3 on PATH: .ci/setup builds it into .tools/bin");
        Self { folder, address, process }
    }

    /// A bucket of its own.
    pub async fn bucket(&self) -> Bucket {
        static BUCKETS: AtomicU32 = AtomicU32::new(0);
        let name = format!("bucket-{}", BUCKETS.fetch_add(1, Ordering::Relaxed));
        let listening = async {
            while tokio::net::TcpStream::connect(&self.address).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(START_LIMIT, listening).await.unwrap();
        fs::create_dir(self.folder.join(&name)).unwrap();
        let key_file = self.folder.join(format!("{name}.key"));
        let keys = format!("[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n");
        write_private(&key_file, keys.into()).await.unwrap();
        Bucket { name, address: self.address.clone(), key_file }
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

/// A bucket on the server.
pub struct Bucket {
    name: String,
    address: String,
    pub key_file: PathBuf,
}

impl Bucket {
    /// What lies under a prefix of it, by the way over `address`.
    fn location(&self, address: &str, prefix: &str) -> String {
        let key_file = self.key_file.display();
        format!("s3://{}/{prefix}?endpoint=http://{address}&key_file={key_file}", self.name)
    }

    /// Its objects below a prefix.
    pub fn store(&self, prefix: &str) -> Arc<dyn ObjectStore> {
        open(&self.location(&self.address, prefix))
    }

    /// Its objects behind a proxy that injects the planned faults.
    pub async fn behind_faults(&self) -> (Arc<dyn ObjectStore>, Faults) {
        let faults = Faults::start(self.address.clone()).await;
        (open(&self.location(&faults.address, "")), faults)
    }
}

pub fn open(location: &str) -> Arc<dyn ObjectStore> {
    open_bucket(location, Arc::new(SystemRandomness::open().unwrap())).unwrap()
}

type Body = BoxBody<Bytes, io::Error>;

fn whole(bytes: Bytes) -> Body {
    BodyExt::boxed(Full::new(bytes).map_err(|never| match never {}))
}

/// What a proxy does to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with this status, and not passed on.
    Status(u16),
    /// It is refused as one too many, with a rest of so many seconds (`Retry-After`).
    Rest(u64),
    /// It is never answered.
    Silence,
    /// It is done, and the connection ends without an answer.
    LoseAnswer,
    /// The connection ends in the middle of the answer's body.
    CutAnswer,
}

/// The planned faults, each for one request, and the requests that came.
#[derive(Clone)]
pub struct Faults {
    address: String,
    plan: Arc<Mutex<VecDeque<(&'static str, Fault)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Faults {
    async fn start(server: String) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let faults = Self { address, plan: Arc::default(), asked: Arc::default() };
        let own = faults.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (own, server) = (own.clone(), server.clone());
                tokio::spawn(async move {
                    let service = service_fn(|request| own.pass(&server, request));
                    // An error here is the planned fault.
                    let _ =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        faults
    }

    /// Has the next requests whose line contains `part` fail, each in one of these ways.
    pub fn plan(&self, part: &'static str, faults: &[Fault]) {
        self.plan.lock().extend(faults.iter().map(|fault| (part, *fault)));
    }

    /// Method and target of each request since this was asked last, those that failed too.
    pub fn asked(&self) -> Vec<String> {
        assert!(self.plan.lock().is_empty(), "no request met {:?}", self.plan.lock());
        std::mem::take(&mut self.asked.lock())
    }

    async fn pass(&self, server: &str, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let line = format!("{} {}", request.method(), request.uri());
        self.asked.lock().push(line.clone());
        let fault = {
            let mut plan = self.plan.lock();
            let due = plan.front().is_some_and(|(part, _)| line.contains(part));
            if due { plan.pop_front().map(|(_, fault)| fault) } else { None }
        };
        let refused = match fault {
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Status(status)) => Some((status, None)),
            Some(Fault::Rest(seconds)) => Some((503, Some(seconds))),
            _ => None,
        };
        if let Some((status, rest)) = refused {
            let status = StatusCode::from_u16(status).unwrap();
            request.into_body().collect().await.map_err(io::Error::other)?;
            let answer = "<Error><Code>SlowDown</Code><Message>as planned</Message></Error>";
            let mut response = Response::new(whole(Bytes::from_static(answer.as_bytes())));
            *response.status_mut() = status;
            if let Some(seconds) = rest {
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            return Ok(response);
        }
        let (parts, body) = forward(server, request).await.into_parts();
        let lost = || io::Error::other("as planned");
        match fault {
            Some(Fault::LoseAnswer) => Err(lost()),
            Some(Fault::CutAnswer) => {
                let half = Frame::data(body.slice(..body.len() / 2));
                let cut = StreamBody::new(stream::iter([Ok(half), Err(lost())]));
                Ok(Response::from_parts(parts, BodyExt::boxed(cut)))
            }
            _ => Ok(Response::from_parts(parts, whole(body))),
        }
    }
}

/// Passes a request on as it is, the host that it was signed for included.
async fn forward(server: &str, request: Request<Incoming>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let stream = tokio::net::TcpStream::connect(server).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::from_parts(parts, Full::new(body));
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, body)
}
