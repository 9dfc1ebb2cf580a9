use proptest::prelude::*;

use super::*;

const GIT: &str = "diff --git a/src/x.rs b/src/x.rs\nindex 1..2 100644\n--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
const UNIFIED: &str = "--- old.txt\t2024-01-01 00:00:00.000000000 +0000\n+++ new.txt\t2024-01-02 00:00:00 +0000\n@@ -1 +1 @@\n-a\n+b\n";
const V4A: &str =
    "*** Begin Patch\n*** Update File: a.txt\n@@ def\n a\n-b\n+c\n*** Add File: b.txt\n+x\n*** End Patch\n";

fn known(members: &[&str]) -> Extent {
    Extent::Known(members.iter().map(|member| (*member).to_owned()).collect())
}

fn is_uncertain(text: &str) {
    let reading = read(text);
    assert!(!reading.complete, "{text:?}: {reading:?}");
    assert_eq!(reading.paths, Extent::Unknown, "{text:?}");
    assert!(reading.risks.contains(Risk::Execution) && reading.risks.contains(Risk::LocalWrite));
}

#[test]
fn every_form_gives_its_paths_and_deletions() {
    for (text, paths, deletes) in [
        (V4A, &["a.txt", "b.txt"][..], false),
        (
            "*** Begin Patch\n*** Delete File: a b.txt\n*** End Patch",
            &["a b.txt"],
            true,
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** Move to: b/c\n@@\n-x\n+y\n*** End Patch",
            &["a", "b/c"],
            false,
        ),
        (
            "*** Begin Patch\n*** Move File: a -> b\n*** End Patch\n",
            &["a", "b"],
            false,
        ),
        (
            "*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n",
            &["a"],
            false,
        ),
        (GIT, &["src/x.rs"], false),
        (UNIFIED, &["old.txt", "new.txt"], false),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", &["x"], true),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", &["x"], false),
        (
            "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n",
            &["x", "y"],
            false,
        ),
        (
            "diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n",
            &["x", "y"],
            false,
        ),
        ("diff --git a/x y b/x y\nindex 1..2\n", &["x y"], false),
        (
            "diff --git a/x b/x\ndeleted file mode 100644\nindex 1..0\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            &["x"],
            true,
        ),
        (
            "diff --git a/x b/x\ndeleted file mode 100644\nindex 1..0\n",
            &["x"],
            true,
        ),
        (
            "diff --git \"a/\\303\\244\\\"x\" \"b/\\303\\244\\\"x\"\nindex 1..2\n",
            &["ä\"x"],
            false,
        ),
        (
            "--- \"a/t\\303\\244b\"\n+++ \"b/t\\303\\244b\"\n@@ -1 +1 @@\n-a\n+b\n",
            &["täb"],
            false,
        ),
        (
            "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\nKcmZQzfB*mh01yBG\n\nliteral 0\nHcmV?d00001\n\n",
            &["x"],
            false,
        ),
        (
            "From abc Mon Sep 17\nSubject: x\n\nText\n---\n x | 2 +-\n\ndiff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n-- \n2.40.0\n",
            &["x"],
            false,
        ),
    ] {
        let reading = read(text);
        assert!(reading.complete, "{text:?}: {reading:?}");
        assert_eq!(reading.paths, known(paths), "{text:?}");
        assert_eq!(
            (reading.deletes, reading.risks.contains(Risk::Delete)),
            (deletes, deletes),
            "{text:?}"
        );
        assert!(reading.risks.contains(Risk::LocalWrite) && !reading.risks.contains(Risk::Execution));
    }
}

#[test]
fn content_that_looks_like_a_header_of_a_diff_is_content() {
    let reading = read("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n-- b\n+++ b/y\n++ c\n");
    assert!(reading.complete, "{reading:?}");
    assert_eq!(reading.paths, known(&["x"]));
}

#[test]
fn a_change_of_mode_is_a_change_of_permissions() {
    let reading = read("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
    assert!(
        reading.complete && reading.risks.contains(Risk::PermissionChange),
        "{reading:?}"
    );
}

#[test]
fn what_cannot_be_read_whole_is_uncertain() {
    for text in [
        "",
        "hello",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n+b\n",
        "*** Update File: a\n+b\n",
        "*** Begin Patch\n*** Update File: a\n+b\n*** End Patch\nrm -rf /\n",
        "*** Begin Patch\n*** Add File: a\n+b\nno plus\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n+*** Delete File: b\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n *** Delete File: b\n*** End Patch",
        "*** Begin Patch\n*** Remove File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File:\n+b\n*** End Patch",
        "*** Begin Patch\n*** Move File: a\n*** End Patch",
        "*** Begin Patch\n*** Move File: a -> b -> c\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n*** Move to: b\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\u{202e}b\n+x\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\r*** Delete File: b\n+x\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\u{2028}b\n+x\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\0\n+x\n*** End Patch",
        "--- a/x\n+++ b/x\n",
        "--- a/x\n",
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/x\n@@ -1,5 +1,5 @@\n-a\n+b\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n",
        "--- a/x\n+++ b/x\n@@ -a +1 @@\n-a\n+b\n",
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/x y b/z w\nindex 1..2\n",
        "--- a/x 2024-01-01 00:00:00\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "--- \"a/\\q\"\n+++ \"b/x\"\n@@ -1 +1 @@\n-a\n+b\n",
        "--- \"a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        "*** old\n--- new\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
    ] {
        is_uncertain(text);
    }
}

#[test]
fn mixed_forms_are_uncertain_and_keep_what_they_delete() {
    for text in [
        format!("{V4A}{GIT}"),
        format!("{GIT}{V4A}"),
        format!("{UNIFIED}*** Delete File: x\n"),
        format!("{GIT}*** Begin Patch\n*** Delete File: x\n*** End Patch"),
    ] {
        is_uncertain(&text);
    }
    let reading = read(&format!("{GIT}*** Delete File: x\n"));
    assert!(
        reading.deletes && reading.risks.contains(Risk::Delete),
        "{reading:?}"
    );
}

#[test]
fn large_patches_are_answered() {
    for piece in [
        "*** Add File: a\n",
        "--- a\n+++ b\n",
        "diff --git a/ b/ ",
        "@@ -1,99999 +1,99999 @@\n ",
        "\"\\",
        "\n",
        "GIT binary patch\n",
        "*** Begin Patch\n",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        assert!(!read(&text).complete);
        assert!(
            !read(&format!(
                "--- a\n+++ b\n@@ -1,9999999 +1,9999999 @@\n{}",
                "\n".repeat(1 << 20)
            ))
            .complete
        );
    }
    assert!(!read(&"x".repeat(MAX_PATCH + 1)).complete);
}

proptest! {
    #[test]
    fn whatever_the_text_a_reading_is_never_empty_and_uncertainty_never_milder(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![GIT, UNIFIED, V4A, "*** Begin Patch\n", "*** End Patch\n", "*** Delete File: x\n", "--- a\n", "+++ b\n",
                "@@ -1 +1 @@\n", "rename from x\n", "diff --git a/x b/x\n", "\n", "+", "-", " ", "\"", "\\", "\r"]).prop_map(str::to_owned),
            "\\PC{0,12}",
        ], 0..12),
    ) {
        let text = pieces.concat();
        let reading = read(&text);
        prop_assert!(reading.risks.contains(Risk::LocalWrite));
        prop_assert_eq!(reading.complete, reading.paths != Extent::Unknown);
        prop_assert_eq!(reading.complete, !reading.risks.contains(Risk::Execution));
        prop_assert_eq!(reading.deletes, reading.risks.contains(Risk::Delete));
    }
}
