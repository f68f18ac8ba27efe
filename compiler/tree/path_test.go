package tree

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		path string
		want string // of the error; "" for none
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
		{tempPath("large/a"), "temporary"},
	} {
		err := checkPath(c.path)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("checkPath(%q) = %v, want %q", c.path, err, c.want)
		}
		// The same holds beside a file in the same folder.
		dir, _ := path.Split(c.path)
		if sibling := dir + "sibling"; checkPath(sibling) == nil {
			if beside := CheckPaths([]string{sibling, c.path}); fmt.Sprint(beside) != fmt.Sprint(err) {
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
		err := CheckPaths(c.paths)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("CheckPaths(%q) = %v, want %q", c.paths, err, c.want)
		}
	}
}

func TestTempPathIsInTheSameFolderAndShort(t *testing.T) {
	long := strings.Repeat("x", 255)
	temp := tempPath("a/b/" + long)
	if dir, name, _ := strings.Cut(temp, tempPrefix); dir != "a/b/" || len(name) > 100 {
		t.Errorf("tempPath is %s", temp)
	}
}
