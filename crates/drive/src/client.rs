//! Ways to reach a database: protocols that we speak ourselves, each an implementation of [`crate::protocol`], and
//! somebody's library.

mod certificates;
pub mod library;
pub(crate) mod mysql;
pub(crate) mod postgres;

/// Make the same for whichever protocol a server speaks: `$P` is its type in `$made`.
macro_rules! over {
    ($protocol:expr, $P:ident => $made:expr) => {
        match $protocol {
            $crate::spec::WireProtocol::Postgres => {
                type $P = $crate::client::postgres::Postgres;
                $made
            }
            $crate::spec::WireProtocol::Mysql => {
                type $P = $crate::client::mysql::Mysql;
                $made
            }
        }
    };
}
pub(crate) use over;
