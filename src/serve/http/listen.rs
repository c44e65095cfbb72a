//! The accept loop: bounded connections, a limit on the time for headers, and a drain that
//! ends.
//!
//! It is our own because the framework's has neither limit, and waits for ever for the last
//! connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::service::Service;

/// Bytes of a request's headers and of what is read ahead of a body.
const BUFFER: usize = 64 * 1024;

/// How long accepting rests after a fault such as too many open files.
const REST: Duration = Duration::from_millis(100);

/// How long the answers to what was given up may take.
const LAST: Duration = Duration::from_secs(2);

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections whose request was not answered in time.
    pub cut_off: usize,
}

impl Server {
    /// Listens where the service's options say.
    ///
    /// # Errors
    /// When the address can't be had.
    pub async fn bind(service: Arc<Service>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(service.options().listen).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, service })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` fires; then takes no new connection, lets requests in hand end
    /// for the time of the options or until `abandon` fires, and gives up the rest.
    pub async fn run(
        self,
        router: Router,
        stop: CancellationToken,
        abandon: CancellationToken,
    ) -> Drained {
        let limits = *self.service.limits();
        let connections = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let graceful = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = accept(&self.listener, &connections) => accepted,
            };
            let Some((stream, permit)) = accepted else { continue };
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(limits.read_time);
            builder.max_buf_size(BUFFER);
            let service = TowerToHyperService::new(router.clone());
            let connection =
                graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
            let gauge = self.service.metrics.connections.clone();
            gauge.inc();
            tokio::spawn(async move {
                // A client that goes away is no fault of the server.
                if let Err(error) = connection.await {
                    tracing::debug!("a connection ended: {error}");
                }
                gauge.dec();
                drop(permit);
            });
        }
        drop(self.listener);
        self.service.drain();
        let open = connections;
        let all = limits.connections.min(Semaphore::MAX_PERMITS);
        let mut ended = std::pin::pin!(graceful.shutdown());
        let whole = tokio::select! {
            () = &mut ended => true,
            () = tokio::time::sleep(limits.drain_time) => false,
            () = abandon.cancelled() => false,
        };
        self.service.abandon();
        // Judges that are given up still become answers.
        if whole || tokio::time::timeout(LAST, ended).await.is_ok() {
            return Drained::default();
        }
        Drained { cut_off: all - open.available_permits() }
    }
}

/// The next connection, once there is room for one; `None` after a fault.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!("failed to accept a connection: {error}");
            tokio::time::sleep(REST).await;
            None
        }
    }
}
