use super::*;

fn known(members: &[&str]) -> Extent {
    Extent::Known(members.iter().map(|member| (*member).to_owned()).collect())
}

#[test]
fn the_paths_that_a_reader_names_are_known() {
    assert_eq!(
        read("cat a/b.txt /etc/passwd").paths,
        known(&["a/b.txt", "/etc/passwd"])
    );
    assert_eq!(read("grep -rn needle src docs").paths, known(&["src", "docs"]));
    assert_eq!(read("grep -e needle src").paths, known(&["src"]));
    assert_eq!(
        read("grep -f /etc/shadow src").paths,
        known(&["/etc/shadow", "src"])
    );
    assert_eq!(read("sort -o out in").paths, known(&["out", "in"]));
    assert_eq!(read("head -n 5 f").paths, known(&["f"]));
    assert_eq!(read("rm -rf a b").paths, known(&["a", "b"]));
    assert_eq!(
        read("wc --files0-from=/etc/shadow").paths,
        known(&["/etc/shadow"])
    );
    assert_eq!(read("find /a /b -name x").paths, known(&["/a", "/b"]));
    assert_eq!(read("ls").paths, known(&[]));
    assert_eq!(read("ls > f").paths, known(&["f"]));
    assert_eq!(read("sudo cat /etc/shadow").paths, known(&["/etc/shadow"]));
}

#[test]
fn paths_that_cannot_be_read_are_unknown() {
    for text in [
        "cat $x",
        "cat *",
        "cat a{b,c}",
        "ls > $x",
        "cat x | xargs rm",
        "python3 x.py",
        "cat \"a$b\"",
        "git diff x",
    ] {
        assert_eq!(read(text).paths, Extent::Unknown, "{text}");
    }
}

#[test]
fn the_hosts_of_destinations_are_known() {
    for (text, hosts) in [
        ("curl https://Example.com/a", &["example.com"][..]),
        ("curl -sSfL https://a.example:8443/x?y", &["a.example"]),
        ("curl https://user:pw@a.example/x", &["a.example"]),
        ("curl http://a@b@evil.example/", &["evil.example"]),
        ("curl a.example b.example", &["a.example", "b.example"]),
        ("curl http://[::1]:80/", &["::1"]),
        ("curl --url https://a.example", &["a.example"]),
        ("wget https://a.example/f", &["a.example"]),
        ("ssh -p 22 bob@a.example", &["a.example"]),
        ("scp f bob@a.example:/x", &["a.example"]),
        ("rsync -a x a.example:/y", &["a.example"]),
        ("nc a.example 80", &["a.example"]),
        ("git push https://a.example/x.git main", &["a.example"]),
        ("git push git@a.example:x/y.git main", &["a.example"]),
        ("cat f > /dev/tcp/a.example/80", &["a.example"]),
        ("ls", &[]),
    ] {
        assert_eq!(read(text).hosts, known(hosts), "{text}");
    }
}

#[test]
fn destinations_that_cannot_be_read_are_unknown() {
    for text in [
        "curl $x",
        "curl \"https://$x/\"",
        "curl https://{a,b}.example/",
        "curl 'https://{a,b}.example/'",
        "curl 'https://a[1-3].example/'",
        "curl -x proxy https://a.example",
        "curl --resolve a:80:1.2.3.4 https://a.example",
        "curl -K config",
        "curl 'https://a.example\\@evil.example/'",
        "curl https://a.example%2f@evil",
        "curl \"https://a.example$x/\"",
        "git push origin main",
        "ssh -J jump a.example",
        "ssh -o ProxyCommand=x a.example",
        "nc -x p:1 a.example 80",
        "python3 -c 'x'",
        "./x",
        "cat f > /dev/tcp/$h/80",
    ] {
        assert_eq!(read(text).hosts, Extent::Unknown, "{text}");
    }
}

#[test]
fn the_recipients_of_mail_are_known() {
    assert_eq!(
        read("mail -s 'a subject' -c carol@example.com bob@example.com").recipients,
        known(&["carol@example.com", "bob@example.com"])
    );
    assert_eq!(read("mail $x").recipients, Extent::Unknown);
    assert_eq!(read("sendmail -t").recipients, Extent::Unknown);
}
