//! The loop.

use anyhow::Result;

use crate::{Answer, Ask, Counter, Options, Status, Watch};

/// Watches, learns and fetches until somebody asks it to stop, or the watch ends. The last account.
///
/// # Errors
/// When the state's folder cannot be used at all.
pub fn serve(options: &Options, mut watch: Box<dyn Watch>, mut counter: Counter) -> Result<Status> {
    let _ = options;
    let mut status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        observer: watch.name().to_owned(),
        ..Status::default()
    };
    let mut stop = false;
    while !stop {
        {
            let mut fds = vec![rustix::event::PollFd::from_borrowed_fd(
                counter.wait_fd(),
                rustix::event::PollFlags::IN,
            )];
            fds.extend(watch.wait_fd().map(|fd| {
                rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)
            }));
            let _ = rustix::event::poll(&mut fds, None);
        }
        while watch.poll(&mut |_| status.events += 1) {}
        counter.answer(|ask| match ask {
            Ask::Status => Answer::Status(Box::new(status.clone())),
            Ask::Predict { .. } => Answer::Predicted(Vec::new()),
            Ask::Stop => {
                stop = true;
                Answer::Stopping
            }
        });
    }
    Ok(status)
}
