package tree_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		path string
		want string // of the error; "" if the path is valid
	}{
		{"large/README.md", ""},
		{"large/app/group_vars/all.yaml", ""},
		{"large/app/.gitignore", ""},
		{"large/app/a..b", ""},
		{"large/app/.kalypso", ""},
		{"large/app/grün.yaml", ""},
		{"", "relative path"},
		{".", "relative path"},
		{"/etc/passwd", "relative path"},
		{"..", "relative path"},
		{"large/../../etc/passwd", "relative path"},
		{"large//app", "relative path"},
		{"large/app/", "relative path"},
		{"large/\xff", "relative path"},
		{`large\..\..\x`, "backslash"},
		{"large/a\nb", "invisible"},
		{"large/a\x00b", "invisible"},
		{"large/" + strings.Repeat("x", 255), ""},
		{"large/" + strings.Repeat("x", 256), "more than 255 bytes"},
		{".git/config", "git's own"},
		{"large/.git/hooks/post-checkout", "git's own"},
		{"large/.GIT/config", "git's own"},
		{"large/.git. /config", "git's own"},
		{"large/.git::$INDEX_ALLOCATION/config", "git's own"},
		{"large/C:/config", "which Windows has in no name"},
		{"large/app:stream", "which Windows has in no name"},
		{"large/app./config", "which Windows has in no name"},
		{"large/app ", "which Windows has in no name"},
		{"large/GIT~1/config", "git's own"},
		{"large/.g\u200cit/config", "invisible"},
		{".kalypso/provenance.json", "kalypso's own folder"},
		{".Kalypso/x", "kalypso's own folder"},
		{"large/" + aTempFile, "temporary"},
	} {
		err := tree.CheckPaths([]string{c.path})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("CheckPaths(%q) = %v, want %q", c.path, err, c.want)
		}
		// The result is the same with another file in the same folder.
		dir, _ := path.Split(c.path)
		if sibling := dir + "sibling"; tree.CheckPaths([]string{sibling}) == nil {
			if beside := tree.CheckPaths([]string{sibling, c.path}); fmt.Sprint(beside) != fmt.Sprint(err) {
				t.Errorf("beside %s: %v, want %v", sibling, beside, err)
			}
		}
	}
}

func TestCheckPaths(t *testing.T) {
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"a/b", "a/c", "a-b/c"}, ""},
		{[]string{"a/b", "a/b"}, "twice"},
		{[]string{"a/b", "a/b-c", "a/b/c/d"}, "folder of"},
	} {
		err := tree.CheckPaths(c.paths)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("CheckPaths(%q) = %v, want %q", c.paths, err, c.want)
		}
	}
}

// A file name may have the maximum length of the file system: its temporary name is not longer.
func TestLongNames(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 255)
	for _, content := range []files{
		{"large/app/" + long: "1", "large/" + long: "1"},
		{"large/app/" + long: "2", "large/" + long: "2"},
		{"large/app/" + long: "3", "large/app/" + long[1:]: "3", "large/" + long: "2"},
		{"large/" + long: "2"},
	} {
		write(t, dir, treeOf(content), dev)
		equal(t, "folder", read(t, dir), content)
		clean(t, dir)
	}
}
