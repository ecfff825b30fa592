//! The protocol of MySQL and MariaDB, version 10 (since MySQL 4.1), client side.
//!
//! [`Session`] is one connection without its socket. The log-in and its packets are `mysql_common`'s; rows and
//! answers are read here, where they lie, because they are what a load driver does all day.
//! Source of the formats: MySQL's "Client/Server Protocol" and MariaDB's "Clients & Utilities, Protocol".
//!
//! The protocol knows no pipeline: a session sends one command at a time and keeps what follows until the answer
//! has come. So a statement can be prepared and executed in one go, and after an error what follows is dropped up
//! to the next [`Frontend::sync`].

mod answer;
mod column;
mod error;
pub mod frames;
mod frontend;
mod login;
mod packet;
mod placeholders;
mod reader;
mod render;
mod row;
mod server_key;
mod session;
mod settings;

pub use column::{Column, Columns};
pub use error::{MysqlError, ServerError, ServerErrorOwned};
pub use frontend::Frontend;
pub use reader::lenenc_bytes;
pub use row::{Row, Values};
pub use session::{Event, Session};
pub use settings::Settings;
