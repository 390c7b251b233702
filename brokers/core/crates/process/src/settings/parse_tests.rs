//! Tests of reading a broker's settings from TOML, and of its error messages.

use super::*;

const STORAGE: &str = "[storage]\ndfs = 'd'\nbucket = 'b'\nmetadata = 'm'\n";

fn read(rest: &str) -> Result<Settings, SettingsError> {
    Settings::from_toml(&format!("{STORAGE}{rest}"), &[])
}

fn message(rest: &str) -> String {
    read(rest).unwrap_err().to_string()
}

#[test]
fn what_is_not_set_has_its_default() {
    let settings = read("[limits]\nconnections_max = 7\n").unwrap();
    assert_eq!(settings.limits.connections_max, 7);
    assert_eq!(settings.topics, Settings::default().topics);
}

#[test]
fn unknown_settings_are_refused_with_line_and_key() {
    let said = message("[limits]\nconnections = 7\n");
    assert!(said.starts_with("line 6: limits.connections: unknown field"), "{said}");
    let said = message("[limit]\n");
    assert!(said.starts_with("line 5: limit: unknown field"), "{said}");
}

#[test]
fn values_of_the_wrong_type_are_refused_with_line_and_key() {
    let said = message("[topics]\n\nauto_create = 1\n");
    assert!(said.starts_with("line 7: topics.auto_create: invalid type"), "{said}");
    let said = message("[[security.users]]\nname = 'a'\npassword = 1\n");
    assert!(said.starts_with("line 7: security.users.password: invalid type"), "{said}");
}

#[test]
fn values_that_make_no_sense_are_refused_with_line_and_key() {
    let said = message("[listener]\nsasl = ['DIGEST-MD5']\n");
    assert!(said.starts_with("line 6: listener.sasl: unknown SASL mechanism"), "{said}");
    let said = message("[listener]\nsuper_users_only = true\n");
    assert!(said.starts_with("line 6: listener.super_users_only: must be false where"), "{said}");
    let said = message("[limits]\nconnections_max = 0\n");
    assert!(said.starts_with("line 6: limits.connections_max: "), "{said}");
    let said = Settings::from_toml("", &[]).unwrap_err().to_string();
    assert!(said.starts_with("storage.dfs: must be set"), "{said}");
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    let said = message("[topics\n");
    assert!(said.starts_with("line 5: "), "{said}");
}

#[test]
fn overrides_win_over_the_file() {
    let set = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        Settings::from_toml(&format!("{STORAGE}[topics]\ndefault_partitions = 2\n"), &overrides)
    };
    let settings = set(&[
        "topics.default_partitions=5",
        "log.level = debug",
        "listener.sasl=['PLAIN']",
        "security.users=[{ name = 'a', password = 'b' }]",
    ])
    .unwrap();
    assert_eq!(settings.topics.default_partitions, 5);
    assert_eq!(settings.log.level, "debug");
    assert_eq!(settings.listener.sasl, ["PLAIN"]);
    assert_eq!(settings.security.users[0].mechanism, "SCRAM-SHA-512");
    let wrong = |overrides: &[&str]| set(overrides).unwrap_err().to_string();
    assert_eq!(wrong(&["nonsense"]), "not of the form key=value: nonsense");
    assert_eq!(wrong(&["no.thing=1"]), "no.thing: unknown section");
    let said = wrong(&["topics.partitions=1"]);
    assert!(said.starts_with("topics.partitions: unknown field"), "{said}");
    let said = wrong(&["topics.default_partitions=0"]);
    assert!(said.contains("topics.default_partitions: must be"), "{said}");
}

#[test]
fn settings_come_back_from_what_they_print() {
    let settings = read("[[security.users]]\nname = 'a'\npassword = 'b'\n").unwrap();
    assert_eq!(Settings::from_toml(&settings.to_toml(), &[]), Ok(settings));
}
