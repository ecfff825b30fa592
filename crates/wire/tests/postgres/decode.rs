use std::sync::Arc;

use loadstone_wire::postgres::{
    Behaviour, Event, Message, Reply, Responder, ServerError, Session, TlsFiles, TlsMode,
    WireError, decode,
};
use proptest::prelude::*;

use crate::link::{Link, settings};

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &len.to_be_bytes(), body].concat()
}

/// Looks at everything that a message can show.
fn look(message: Message<'_>) {
    match message {
        Message::DataRow(row) => row.values().for_each(drop),
        Message::RowDescription(columns) => columns.names().for_each(drop),
        Message::Error(error) | Message::Notice(error) => drop(error.to_owned()),
        _ => {}
    }
}

/// Messages whose lengths are right, whatever they hold.
fn framed() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop::sample::select(b"123ACDEGHIKNRSTZcdnstvW".to_vec());
    let one = (tag, prop::collection::vec(any::<u8>(), 0..40));
    prop::collection::vec(one, 0..8).prop_map(|all| {
        all.iter()
            .flat_map(|(tag, body)| frame(*tag, body))
            .collect()
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![framed(), prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(input in bytes()) {
        let mut rest = &input[..];
        while let Ok(Some((message, used))) = decode(rest) {
            look(message);
            prop_assert!(used >= 5);
            rest = &rest[used..];
        }
    }

    #[test]
    fn no_bytes_make_a_session_panic(input in bytes(), ready: bool, step in 1usize..50) {
        let run = |step: usize| {
            let mut link = Link::ready(Behaviour::default());
            if !ready {
                link.session = Session::new(Arc::new(settings(TlsMode::Disable)), None).unwrap();
            }
            let mut count = 0;
            for chunk in input.chunks(step) {
                let mut take = |event: Event<'_>| {
                    count += 1;
                    if let Event::Message(message) = event {
                        look(message);
                    }
                };
                if link.session.receive(chunk, &mut take).is_err() {
                    return (count, "failed");
                }
            }
            (count, "well")
        };
        prop_assert_eq!(run(step), run(usize::MAX));
    }

    #[test]
    fn no_bytes_make_a_session_panic_that_wants_tls(input in bytes()) {
        let config = TlsFiles::default().client_config(TlsMode::Prefer).unwrap();
        let mut session = Session::new(Arc::new(settings(TlsMode::Prefer)), Some(config)).unwrap();
        let mut consent = vec![b'S'];
        let _ = session.receive(&consent, &mut |_| {});
        consent.extend(&input);
        let _ = session.receive(&input, &mut |_| {});
        let _ = session.pending();
        let _ = session.retry_settings();
    }

    #[test]
    fn no_bytes_make_a_responder_panic(input in bytes(), ready: bool) {
        let mut responder = if ready {
            Link::ready(Behaviour::default()).responder
        } else {
            Responder::new(Arc::new(Behaviour::default()), 1)
        };
        let _ = responder.respond(&input, &mut Vec::new());
    }

    #[test]
    fn rows_survive_encoding(row in prop::collection::vec(prop::option::of(".{0,20}"), 0..20)) {
        let texts: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
        let names: Vec<String> = (0..row.len()).map(|index| format!("c{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let reply = Reply::rows(&names, &[&texts]);
        let mut link = Link::ready(Behaviour { reply, ..Behaviour::default() });
        link.session.frontend().query(b"select").unwrap();
        let mut answer = Vec::new();
        link.responder.respond(link.session.pending().unwrap(), &mut answer).unwrap();

        let (description, used) = decode(&answer).unwrap().unwrap();
        let Message::RowDescription(columns) = description else { panic!("{description:?}") };
        let decoded: Result<Vec<_>, _> = columns.names().collect();
        let expected: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
        prop_assert_eq!(decoded, Ok(expected));
        let (message, _) = decode(&answer[used..]).unwrap().unwrap();
        let Message::DataRow(values) = message else { panic!("{message:?}") };
        let decoded: Result<Vec<_>, _> = values.values().collect();
        let expected: Vec<_> = texts.iter().map(|text| text.map(str::as_bytes)).collect();
        prop_assert_eq!(decoded, Ok(expected));
    }

    #[test]
    fn parameters_survive_encoding(
        sql in "[^\0]{0,40}",
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), 0..9),
    ) {
        let mut link = Link::ready(Behaviour::default());
        let mut frontend = link.session.frontend();
        frontend.parse("s", sql.as_bytes()).unwrap();
        frontend.bind_text("s", values.iter().map(Option::as_deref)).unwrap();
        let sent = link.session.pending().unwrap();
        let parse = frame(b'P', &[b"s\0", sql.as_bytes(), b"\0\0\0"].concat());
        let mut body = b"\0s\0\0\0".to_vec();
        body.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
        for value in &values {
            let len = value.as_ref().map_or(-1, |value| i32::try_from(value.len()).unwrap());
            body.extend(len.to_be_bytes());
            body.extend(value.iter().flatten());
        }
        body.extend([0, 0]);
        prop_assert_eq!(sent, [parse, frame(b'B', &body)].concat());
    }
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let malformed = Err(WireError::Malformed {
        what: "message length",
        at: 1,
    });
    assert_eq!(decode(b"Z\0\0\0\x03I"), malformed);
    let huge = b"D\x40\0\0\x01".to_owned();
    assert_eq!(
        decode(&huge),
        Err(WireError::MessageTooLarge { len: (1 << 30) + 1 })
    );
    assert_eq!(decode(b"Z\0\0\0"), Ok(None));
    assert_eq!(decode(b"Z\0\0\0\x05"), Ok(None));
}

#[test]
fn bodies_that_end_early_are_refused_when_looked_at() {
    let row = frame(b'D', b"\0\x02\0\0\0\x01x\0\0\0\x05y");
    let Ok(Some((Message::DataRow(row), _))) = decode(&row) else {
        panic!("no row")
    };
    let values: Vec<_> = row.values().collect();
    assert_eq!(values[0], Ok(Some(&b"x"[..])));
    assert!(matches!(
        values[1],
        Err(WireError::Malformed {
            what: "DataRow",
            ..
        })
    ));
    assert_eq!(values.len(), 2);
    let negative = frame(b'D', b"\0\x01\xff\xff\xff\xfe");
    let Ok(Some((Message::DataRow(row), _))) = decode(&negative) else {
        panic!("no row")
    };
    assert!(row.values().next().unwrap().is_err());
    for (tag, body) in [
        (b'Z', &b"X"[..]),
        (b'Z', b""),
        (b'C', b"SELECT"),
        (b'T', b"\0"),
        (b'D', b""),
        // An acknowledgement whose tag was changed on the way: it is not known what the server did.
        (b'E', b"INSERT 0 1\0"),
        (b'E', b"SERROR\0Mwithout a code\0\0"),
        (b'E', b"SERROR\0C2350\0Mwith half a code\0\0"),
    ] {
        assert!(
            matches!(decode(&frame(tag, body)), Err(WireError::Malformed { .. })),
            "{tag}"
        );
    }
}

#[test]
fn garbage_is_named_before_it_is_awaited() {
    let mut link = Link::ready(Behaviour::default());
    let outcome = link.deliver(b"?\0\x10\0\0");
    assert!(
        matches!(outcome, Err(WireError::UnexpectedMessage { tag: b'?', .. })),
        "{outcome:?}"
    );
    let mut session = Session::new(Arc::new(settings(TlsMode::Disable)), None).unwrap();
    let outcome = session.receive(b"HTTP/1.1 400 Bad Request\r\n", &mut |_| {});
    assert!(outcome.unwrap_err().hint().contains("PostgreSQL server"));
}

#[test]
fn an_error_shows_its_fields() {
    let fields = b"SFEHLER\0VERROR\0C23505\0Mdouble\0DKey (id)=(1).\0Hlook\0P17\0\0";
    let message = frame(b'E', fields);
    let Ok(Some((Message::Error(error), _))) = decode(&message) else {
        panic!("no error")
    };
    let check = |error: ServerError<'_>| {
        assert_eq!(error.severity(), b"ERROR");
        assert_eq!(error.sqlstate(), *b"23505");
        assert_eq!(error.message(), b"double");
        assert_eq!(error.position(), Some(17));
        assert!(!error.is_fatal());
    };
    check(error);
    let text = error.to_owned().to_string();
    assert_eq!(text, "ERROR: double (SQLSTATE 23505); Key (id)=(1).; look");
}

#[test]
fn a_column_says_its_type_and_its_form() {
    let mut body = b"\0\x02id\0".to_vec();
    body.extend([
        0, 0, 0, 1, 0, 2, 0, 0, 0, 23, 0, 4, 0xff, 0xff, 0xff, 0xff, 0, 1,
    ]);
    body.extend(b"note\0");
    body.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 25, 0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    let message = frame(b'T', &body);
    let Ok(Some((Message::RowDescription(description), _))) = decode(&message) else {
        panic!("{message:?}")
    };
    let columns: Vec<_> = description.columns().map(Result::unwrap).collect();
    assert_eq!(
        (columns[0].name, columns[0].type_oid, columns[0].is_binary),
        (&b"id"[..], 23, true)
    );
    assert_eq!(
        (columns[1].name, columns[1].type_oid, columns[1].is_binary),
        (&b"note"[..], 65_561, false)
    );
}

#[test]
fn a_bind_without_parameters_asks_for_one_form_of_all_results() {
    for (binary, format) in [(true, 1), (false, 0)] {
        let mut link = Link::ready(Behaviour::default());
        link.session.frontend().bind_plain("s", binary).unwrap();
        let body = [&b"\0s\0\0\0\0\0\0\x01\0"[..], &[format]].concat();
        assert_eq!(link.session.pending().unwrap(), frame(b'B', &body));
    }
}
