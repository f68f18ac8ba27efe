package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// entries writes a tar archive; a header without a type is a file's.
func entries(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if h.Typeflag == tar.TypeXGlobalHeader {
			must("the global header", w.WriteHeader(&h))
			continue
		}
		text := h.PAXRecords["text"]
		h.PAXRecords = nil
		h.Size, h.ModTime = int64(len(text)), time.Unix(1e9, 0)
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		must(h.Name, w.WriteHeader(&h))
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	must("the end", w.Close())
	return out.Bytes()
}

func file(name, text string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"text": text}}
}

func folder(name string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}

func hardlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

func special(name string, kind byte) tar.Header { return tar.Header{Name: name, Typeflag: kind} }

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	must("gzip", w.Close())
	return out.Bytes()
}

// show is a tree as text: a line for each path, * after executable files.
func show(t *Tree) string {
	var lines []string
	for name, f := range t.Files {
		mark := ""
		if f.Executable {
			mark = "*"
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s", name, mark, f.Data))
	}
	for name, reason := range t.Refused {
		lines = append(lines, fmt.Sprintf("%s! %s", name, reason))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestRead(t *testing.T) {
	script := file("bin/run", "#!/bin/sh")
	script.Mode = 0o700
	long := strings.Repeat("a-long-name/", 30) + "file"
	for name, c := range map[string]struct {
		data []tar.Header
		want string
	}{
		"nothing":             {nil, ""},
		"files":               {[]tar.Header{file("b", "2"), file("a/b", "1"), script}, "a/b: 1\nb: 2\nbin/run*: #!/bin/sh"},
		"as tar . writes it":  {[]tar.Header{folder("./"), folder("./a/"), file("./a/b", "1"), folder("a")}, "a/b: 1"},
		"an empty folder":     {[]tar.Header{folder("a/")}, ""},
		"a long name":         {[]tar.Header{file(long, "1"), file("ünï", "2")}, long + ": 1\nünï: 2"},
		"case":                {[]tar.Header{file("A", "1"), file("a", "2")}, "A: 1\na: 2"},
		"dots in names":       {[]tar.Header{file("..a", "1"), file("a..", "2"), file(".gitignore", "3")}, "..a: 1\n.gitignore: 3\na..: 2"},
		"links to files":      {[]tar.Header{symlink("a/l", "../b/f"), file("b/f", "1"), symlink("m", "a/l")}, "a/l: 1\nb/f: 1\nm: 1"},
		"a link to a folder":  {[]tar.Header{symlink("l", "./d//e/"), file("d/e/f", "1"), symlink("d/e/g", "f")}, "d/e/f: 1\nd/e/g: 1\nl/f: 1\nl/g: 1"},
		"through a link":      {[]tar.Header{symlink("l", "d/e"), file("d/e/f", "1"), symlink("m", "l/f"), symlink("n", "l/../x"), file("d/x", "2")}, "d/e/f: 1\nd/x: 2\nl/f: 1\nm: 1\nn: 2"},
		"hard links":          {[]tar.Header{file("a", "1"), hardlink("b/c", "./a"), hardlink("d", "b/c")}, "a: 1\nb/c: 1\nd: 1"},
		"a link that leaves":  {[]tar.Header{symlink("d/l", "../../etc/passwd")}, `d/l! is a link to "../../etc/passwd", which leaves the tree`},
		"an absolute link":    {[]tar.Header{symlink("l", "/etc/passwd")}, `l! is a link to "/etc/passwd", which is an absolute path`},
		"a link to nothing":   {[]tar.Header{symlink("l", "m"), file("f", "1"), symlink("n", "f/x")}, "f: 1\n" + `l! is a link to "m", which is not there` + "\n" + `n! is a link to "f/x", which is not there`},
		"a link to a refused": {[]tar.Header{symlink("l", "m"), symlink("m", "/")}, `l! is a link to "m", which is an absolute path` + "\n" + `m! is a link to "/", which is an absolute path`},
		"links in circles":    {[]tar.Header{symlink("l", "m"), symlink("m", "l"), symlink("n", "n")}, `l! is a link to "m", which goes in circles` + "\n" + `m! is a link to "l", which goes in circles` + "\n" + `n! is a link to "n", which goes in circles`},
		"a folder around it":  {[]tar.Header{file("d/f", "1"), symlink("d/l", "."), symlink("d/m", "..")}, "d/f: 1\n" + `d/l! is a link to ".", which leads to a folder around it` + "\n" + `d/m! is a link to "..", which leads to a folder around it`},
		"what git writes":     {[]tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "a commit"}}, file("a", "1")}, "a: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, data := range [][]byte{entries(t, c.data...), zipped(t, entries(t, c.data...))} {
				tree, err := Read(data)
				if err != nil {
					t.Fatal(err)
				}
				if got := show(tree); got != c.want {
					t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
				}
				again, err := Read(Pack(tree))
				if err != nil || show(again) != c.want {
					t.Errorf("packed: %v, got:\n%s", err, show(again))
				}
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data []tar.Header
		want string
	}{
		"up":                 {[]tar.Header{file("../a", "")}, `"../a" has ".." in it`},
		"up inside":          {[]tar.Header{file("a/../b", "")}, `"a/../b" has ".." in it`},
		"absolute":           {[]tar.Header{file("/etc/passwd", "")}, `"/etc/passwd" is an absolute path`},
		"absolute after dot": {[]tar.Header{file(".//etc", ""), file("etc", "")}, `"etc" is there twice`},
		"root":               {[]tar.Header{folder("/")}, `"/" is an absolute path`},
		"root as a link":     {[]tar.Header{symlink(".", "/etc")}, `"." is the root, and not a folder`},
		"backslash":          {[]tar.Header{file(`..\a`, "")}, `"..\\a" has a backslash or an invisible character in it`},
		"control":            {[]tar.Header{file("a\x01b", "")}, `"a\x01b" has a backslash or an invisible character in it`},
		"no UTF-8":           {[]tar.Header{file("a\xff", "")}, `"a\xff" is not written in UTF-8`},
		"git's own":          {[]tar.Header{file("a/.git/config", "")}, `"a/.git/config" is in a folder of git's own`},
		"git's own by case":  {[]tar.Header{file(".GIT/config", "")}, `".GIT/config" is in a folder of git's own`},
		"git's own on NTFS":  {[]tar.Header{file("git~1/config", "")}, `"git~1/config" is in a folder of git's own`},
		"git's own stream":   {[]tar.Header{file(".git::$INDEX_ALLOCATION/x", "")}, `is in a folder of git's own`},
		"git's own on HFS+":  {[]tar.Header{file(".g\u200cit/config", "")}, `has a backslash or an invisible character in it`},
		"empty element":      {[]tar.Header{file("a//b", "")}, `"a//b" has an empty name in it`},
		"long element":       {[]tar.Header{file(strings.Repeat("a", 256), "")}, `that no file system takes`},
		"twice":              {[]tar.Header{file("a", "1"), file("./a", "1")}, `"a" is there twice`},
		"twice by a link":    {[]tar.Header{file("a", "1"), symlink("a", "b")}, `"a" is there twice`},
		"file as a folder":   {[]tar.Header{file("a", "1"), file("a/b", "1")}, `"a" is in or at "a", which is no folder`},
		"folder as a file":   {[]tar.Header{file("a/b", "1"), file("a", "1")}, `"a" is a file and the folder of another`},
		"through a link":     {[]tar.Header{symlink("a", "/etc"), file("a/passwd", "1")}, `"a" is in or at "a", which is no folder`},
		"link as a folder":   {[]tar.Header{symlink("a", "b"), folder("a")}, `"a" is in or at "a", which is no folder`},
		"device":             {[]tar.Header{special("dev/sda", tar.TypeBlock)}, `"dev/sda" is a device`},
		"terminal":           {[]tar.Header{special("dev/tty", tar.TypeChar)}, `"dev/tty" is a device`},
		"pipe":               {[]tar.Header{special("p", tar.TypeFifo)}, `"p" is a pipe`},
		"hard link that leaves": {[]tar.Header{hardlink("a", "../../etc/passwd")},
			`"a" is a hard link to "../../etc/passwd", which has ".." in it`},
		"hard link to nothing":  {[]tar.Header{hardlink("a", "b")}, `"a" is a hard link to "b", which is not before it`},
		"hard link to a folder": {[]tar.Header{folder("d"), hardlink("a", "d")}, `"a" is a hard link to the folder "d"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(entries(t, c.data...))
			if refused := (*EntryError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestReadDamaged(t *testing.T) {
	sound := entries(t, file("a", strings.Repeat("text", 1000)), file("b", "2"))
	packed := zipped(t, sound)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)-6] ^= 1 // in gzip's checksum
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":            {nil, "neither a tar archive"},
		"text":               {bytes.Repeat([]byte("text "), 500), "neither a tar archive"},
		"short text":         {[]byte("text"), "breaks off"},
		"short header":       {sound[:100], "breaks off"},
		"short file":         {sound[:1000], "breaks off"},
		"short gzip":         {packed[:len(packed)-20], "breaks off"},
		"no checksum":        {packed[:len(packed)-4], "breaks off"},
		"wrong checksum":     {flipped, "checksum"},
		"gzip of text":       {zipped(t, bytes.Repeat([]byte("text "), 500)), "neither a tar archive"},
		"half a gzip":        {[]byte{0x1f, 0x8b}, "damaged"},
		"more after gzip":    {append(bytes.Clone(packed), "more than a header is"...), `after "b": the archive is damaged`},
		"text in the middle": {append(bytes.Clone(sound[:512+4096]), bytes.Repeat([]byte("text"), 128)...), `after "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.data)
			if bad := (*FormatError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{Entries: 6, Total: 100, File: 60, Path: 20, Depth: 3}
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		data []tar.Header
		want string
	}{
		"all that fits": {[]tar.Header{file("a/b/c", text(60)), file("d", text(40)), file("12345678901234567890", "")}, ""},
		"entries":       {[]tar.Header{file("1", ""), file("2", ""), file("3", ""), file("4", ""), file("5", ""), file("6", ""), file("7", "")}, "at most 6 entries"},
		"folders":       {[]tar.Header{file("a/b/c", ""), file("b/b/c", ""), file("c/b/c", "")}, "at most 6 entries"},
		"file":          {[]tar.Header{file("a", text(61))}, `"a" is too much: files of at most 60 bytes`},
		"total":         {[]tar.Header{file("a", text(60)), file("b", text(41))}, "at most 100 bytes"},
		"path":          {[]tar.Header{file("123456789012345678901", "")}, "paths of at most 20 bytes"},
		"depth":         {[]tar.Header{file("a/b/c/d", "")}, "paths of at most 3 elements"},
		"hard links":    {[]tar.Header{file("a", text(60)), hardlink("b", "a")}, "at most 100 bytes"},
		"links":         {[]tar.Header{file("a", text(60)), symlink("b", "a")}, "at most 100 bytes"},
		"links to folders": {[]tar.Header{file("a/f", ""), symlink("a/g", "f"), symlink("b", "a"), symlink("c", "a")},
			"at most 6 entries"},
		"depth by links": {[]tar.Header{file("a/b/c", ""), symlink("d", "a"), symlink("a/e", "b"), symlink("b", "a/b")}, "at most 6 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := limits.Read(entries(t, c.data...))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if bad := (*LimitError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// Links that double their targets, forty times, cost only as much as the limits allow.
func TestDoubling(t *testing.T) {
	headers := []tar.Header{file("d40/f", "x")}
	for i := range 40 {
		next := fmt.Sprintf("../d%d", i+1)
		headers = append(headers, symlink(fmt.Sprintf("d%d/a", i), next), symlink(fmt.Sprintf("d%d/b", i), next))
	}
	_, err := Read(entries(t, headers...))
	if bad := (*LimitError)(nil); !errors.As(err, &bad) {
		t.Error(err)
	}
}

// Read reads the contents of a few bytes of gzip only up to the limit, in files and in headers.
func TestBombs(t *testing.T) {
	limits := Limits{Entries: 10, Total: 1 << 20, File: 1 << 30, Path: 100, Depth: 3}
	large := entries(t, file("a", strings.Repeat("\x00", 8<<20)))
	_, err := limits.Read(zipped(t, large))
	if bad := (*LimitError)(nil); !errors.As(err, &bad) {
		t.Error(err)
	}
	var headers bytes.Buffer
	w := tar.NewWriter(&headers)
	for range 100 {
		must("header", w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": strings.Repeat("x", 1<<16)}}))
	}
	must("the end", w.Close())
	if _, err := limits.Read(zipped(t, headers.Bytes())); !errors.As(err, new(*LimitError)) {
		t.Error(err)
	}
}

// Pack is part of the format of kalypso.lock. If its bytes change, earlier locks become wrong.
func TestPackIsStable(t *testing.T) {
	tree := &Tree{
		Files:   map[string]File{"b/c": {Data: []byte("text\n")}, "a": {Executable: true}, strings.Repeat("long/", 40) + "ü": {Data: []byte("x")}},
		Refused: map[string]string{"m": "is a submodule"},
	}
	first := Pack(tree)
	if !bytes.Equal(first, Pack(&Tree{Files: maps.Clone(tree.Files), Refused: maps.Clone(tree.Refused)})) {
		t.Error("two packs differ")
	}
	const want = "92e680528dd75054df1b39667e07bd3ddd92e1155f4891c3fb5398dadfed5739"
	if got := digest(first); got != want {
		t.Errorf("the digest is %s", got)
	}
}

func TestSub(t *testing.T) {
	tree, err := Read(entries(t, file("a/b/c", "1"), file("a/d", "2"), file("e", "3"), symlink("a/l", "/"), symlink("k", "/")))
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"./":    show(tree),
		"a":     "b/c: 1\nd: 2\n" + `l! is a link to "/", which is an absolute path`,
		"./a/b": "c: 1",
		"a/b/":  "c: 1",
		"e":     `"e" is a file, and not a folder`,
		"x/y":   `"x/y" is no folder of the source`,
		"../a":  `"../a" has ".." in it`,
		"/a":    `"/a" is an absolute path`,
		"a/l":   `"a/l" is a link to "/", which is an absolute path`,
		"k/x/y": `"k" is a link to "/", which is an absolute path`,
	} {
		sub, err := tree.Sub(dir)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = show(sub)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
	if f, err := tree.File("./a/d"); err != nil || string(f.Data) != "2" {
		t.Errorf("%q, %v", f.Data, err)
	}
	for name, want := range map[string]string{
		"a":     `"a" is no file of the source`,
		"k/sub": `"k" is a link to "/", which is an absolute path`,
	} {
		if _, err := tree.File(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
