//! Skills are found, described and read; files outside their folders are not.

use std::fs;
use std::path::Path;

use rowmill_core::ports::{ToolHost, ToolRequest};
use rowmill_tools::SkillHost;
use rowmill_types::{ProblemCode, ToolOutput};
use serde_json::{Value, json};
use tempfile::TempDir;

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn two() -> TempDir {
    let folder = TempDir::new().unwrap();
    write(
        folder.path(),
        "pdf/SKILL.md",
        "---\nname: pdf\ndescription: >\n  Reads\n  PDF files\nlicense: x\n---\n\n# PDF\nUse it.\n",
    );
    write(folder.path(), "pdf/scripts/run.py", "print(1)\n");
    write(
        folder.path(),
        "mail/SKILL.md",
        "---\r\nname: mail\r\ndescription: \"Writes: letters\"\r\n---\r\nDear\r\n",
    );
    write(folder.path(), "secret.txt", "outside");
    folder
}

async fn ask(skills: &SkillHost, arguments: Value) -> ToolOutput {
    let arguments = arguments.to_string();
    let request = ToolRequest {
        row: 1,
        id: &rowmill_types::RowId::Number(1),
        key: "k",
        tool: "read_skill",
        arguments: &arguments,
        idempotent: true,
        timeout: None,
    };
    skills.call(request).await.unwrap()
}

#[test]
fn the_instruction_lists_every_skill() {
    let folder = two();
    let skills = SkillHost::read(&[folder.path().into()]).unwrap();
    let text = skills.instructions();
    assert!(text.contains("read_skill"), "{text}");
    assert!(text.ends_with("\n- `mail`: Writes: letters\n- `pdf`: Reads PDF files\n"), "{text}");
    assert_eq!(skills.spec().schema["properties"]["name"]["enum"], json!(["mail", "pdf"]));
    assert_eq!(SkillHost::read(&[]).unwrap().instructions(), "");
}

#[tokio::test]
async fn a_skill_and_the_files_beside_it_can_be_read() {
    let folder = two();
    write(folder.path(), "pdf/dot.png", "");
    fs::write(folder.path().join("pdf/dot.png"), b"\x89PNG\r\n\x1a\n\0\0\0\0").unwrap();
    let skills = SkillHost::read(&[folder.path().join("pdf"), folder.path().join("mail")]).unwrap();
    assert_eq!(ask(&skills, json!({"name": "pdf"})).await.text, "# PDF\nUse it.");
    assert_eq!(ask(&skills, json!({"name": "mail", "file": "SKILL.md"})).await.text, "Dear");
    assert_eq!(ask(&skills, json!({"name": "pdf", "file": "./scripts/run.py"})).await.text, "print(1)\n");
    let image = ask(&skills, json!({"name": "pdf", "file": "dot.png"})).await;
    assert_eq!(
        (image.attachments[0].name.as_str(), image.attachments[0].media_type.as_str()),
        ("dot.png", "image/png")
    );
}

#[tokio::test]
async fn nothing_outside_the_folder_of_a_skill_is_given() {
    let folder = two();
    let pdf = folder.path().join("pdf");
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), pdf.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(folder.path(), pdf.join("up")).unwrap();
    let absolute = folder.path().join("secret.txt").to_str().unwrap().to_owned();
    let skills = SkillHost::read(&[pdf]).unwrap();
    for file in ["../secret.txt", "scripts/../../secret.txt", "link.txt", "up/secret.txt", absolute.as_str()]
    {
        let output = ask(&skills, json!({"name": "pdf", "file": file})).await;
        assert!(output.is_error, "{file}");
        assert_eq!(output.text, format!("`{file}` is not in the folder of the skill `pdf`"));
    }
    let cases = [
        (json!({"name": "pdf", "file": "none.txt"}), "the skill `pdf` has no file `none.txt`"),
        (json!({"name": "pdf", "file": "scripts"}), "`scripts` is not a file"),
        (json!({"name": "mail"}), "there is no skill `mail`; there are `pdf`"),
    ];
    for (arguments, expected) in cases {
        let output = ask(&skills, arguments).await;
        assert!(output.is_error);
        assert_eq!(output.text, expected);
    }
}

#[test]
fn a_folder_that_is_no_skill_is_a_problem() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(folder.path(), "bare/SKILL.md", "# no front matter\n");
    write(folder.path(), "silent/SKILL.md", "---\nname: silent\n---\ntext");
    write(folder.path(), "nameless/SKILL.md", "---\ndescription: x\nname: ' '\n---\ntext");
    write(folder.path(), "broken/SKILL.md", "---\nname: [\n---\ntext");
    write(folder.path(), "one/SKILL.md", "---\nname: same\ndescription: x\n---\n");
    write(folder.path(), "two/SKILL.md", "---\nname: Same\ndescription: x\n---\n");
    fs::create_dir(at("empty")).unwrap();
    let cases = [
        (vec![at("bare")], "the skill has no front matter: `"),
        (vec![at("silent")], "the skill has no `description`: `"),
        (vec![at("nameless")], "the skill has no `name`: `"),
        (vec![at("broken")], "the front matter of the skill is not valid: `"),
        (vec![at("one"), at("two")], "two skills have the name `Same`"),
        (vec![at("empty")], "there is no skill in `"),
        (vec![at("missing")], "cannot read the skills folder: `"),
    ];
    for (folders, expected) in cases {
        let problem = SkillHost::read(&folders).unwrap_err();
        assert!(problem.message.starts_with(expected), "{}", problem.message);
        assert_eq!(problem.code, ProblemCode::SkillUnusable);
    }
}
