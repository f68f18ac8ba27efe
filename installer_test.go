package kalypso_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// tarball returns an archive of a release with a program.
func tarball(t *testing.T, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "kalypso", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = io.WriteString(w, program)
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// linked returns an archive of a release in which the program is a link.
func linked(t *testing.T, kind byte, to string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := errors.Join(
		w.WriteHeader(&tar.Header{Name: "LICENSE", Mode: 0o644}),
		w.WriteHeader(&tar.Header{Name: "kalypso", Typeflag: kind, Linkname: to, Mode: 0o755}),
		w.Close(), z.Close())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zipped returns an archive of a release for Windows.
func zipped(t *testing.T, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("kalypso.exe")
	if err == nil {
		_, err = io.WriteString(w, program)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// says returns a program that prints a version of kalypso.
func says(version string) string {
	return "#!/bin/sh\necho 'kalypso  " + version + "'\necho 'CUE  v1'\n"
}

// mirror serves releases. It serves their files by path. With "cut/" before the path, a file ends
// early. With "short/" before it, a file ends early and the answer does not have its length.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	const linux, windows = "kalypso_linux_amd64.tar.gz", "kalypso_windows_amd64.zip"
	files := map[string][]byte{}
	release := func(folder string, archives map[string][]byte) {
		var sums strings.Builder
		for name, data := range archives {
			files[folder+"/"+name] = data
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		}
		files[folder+"/checksums.txt"] = []byte(sums.String())
		files[folder+"/checksums.txt.sigstore.json"] = []byte("{}")
	}
	v1, v2 := tarball(t, says("v0.1.0")), tarball(t, says("v0.2.0"))
	release("download/v0.1.0", map[string][]byte{linux: v1, windows: zipped(t, "MZ")})
	release("download/v0.2.0", map[string][]byte{linux: v2})
	release("latest/download", map[string][]byte{linux: v2})
	release("download/v0.0.1", map[string][]byte{linux: v1})                                // says that it is another
	release("download/v0.0.2", map[string][]byte{linux: tarball(t, "#!/bin/sh\nexit 1\n")}) // does not run
	release("download/v0.0.3", map[string][]byte{windows: zipped(t, "MZ")})                 // not for all systems
	release("download/v0.0.4", map[string][]byte{linux: []byte("<html>")})                  // no archive
	release("download/v0.0.5", map[string][]byte{linux: v1})                                // another was signed
	files["download/v0.0.5/"+linux] = v2
	release("download/v0.0.6", map[string][]byte{linux: v1}) // without a signature
	delete(files, "download/v0.0.6/checksums.txt.sigstore.json")
	release("download/v0.0.7", map[string][]byte{linux: linked(t, tar.TypeSymlink, "/bin/sh")})
	release("download/v0.0.8", map[string][]byte{linux: linked(t, tar.TypeLink, "LICENSE")})
	release("download/v0.0.9", map[string][]byte{linux: linked(t, tar.TypeDir, "")})

	script, err := os.ReadFile("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	files["download/v0.1.0/install.sh"], files["latest/download/install.sh"] = script, script

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		for _, fault := range []string{"cut/", "short/"} {
			data, faulty := files[strings.TrimPrefix(name, fault)]
			if !strings.HasPrefix(name, fault) || !faulty {
				continue
			}
			if !strings.HasSuffix(name, ".txt") {
				if fault == "cut/" {
					w.Header().Set("Content-Length", strconv.Itoa(len(data)))
				}
				data = data[:len(data)/2]
			}
			w.Write(data)
			return
		}
		data, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server
}

// tools makes a folder with programs of the system or, as on Alpine, of busybox.
func tools(t *testing.T, busybox bool, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		program := name
		if busybox {
			program = "busybox"
		}
		file, err := exec.LookPath(program)
		if err == nil {
			err = os.Symlink(file, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// basic are the programs that install.sh needs on any system, in addition to the programs that it
// looks for.
var basic = []string{"sh", "awk", "cat", "chmod", "mkdir", "mktemp", "mv", "rm", "sed", "uname"}

func TestInstaller(t *testing.T) { testInstaller(t, []string{"sh"}, false, "curl") }

func TestSlowInstaller(t *testing.T) {
	isolated.Slow(t, "it needs other shells, wget and shellcheck")
	t.Run("dash", func(t *testing.T) { testInstaller(t, []string{"dash"}, false, "curl") })
	t.Run("wget", func(t *testing.T) { testInstaller(t, []string{"bash"}, false, "wget") })
	t.Run("busybox", func(t *testing.T) { testInstaller(t, []string{"busybox", "sh"}, true, "wget") })
	command(t, "", "shellcheck", "install.sh")
}

// testInstaller runs install.sh by a shell, with programs of busybox or the system, and
// one that downloads.
func testInstaller(t *testing.T, shell []string, busybox bool, download string) {
	script, err := filepath.Abs("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range shell[:1] {
		if shell[i], err = exec.LookPath(word); err != nil {
			t.Fatal(err)
		}
	}
	server := mirror(t)
	all := slices.Concat(basic, []string{"gzip", "sha256sum", "tar", download})
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	}
	system := []string{"KALYPSO_OS=Linux", "KALYPSO_ARCH=x86_64"}
	for _, c := range []struct {
		name     string
		args     []string
		env      []string
		tools    []string // nil for all
		from     string   // a folder of the server
		cosign   string   // a script
		code     int
		message  string
		contains string // a text in the installed program
	}{
		{name: "newest", message: "installed kalypso v0.2.0 as ", contains: "v0.2.0"},
		{name: "latest", args: []string{"latest"}, contains: "v0.2.0"},
		{name: "a version", args: []string{"v0.1.0"}, message: "cosign is not installed", contains: "v0.1.0"},
		{name: "a number", args: []string{"0.1.0"}, message: "is not in PATH", contains: "v0.1.0"},
		{name: "for another system", args: []string{"0.1.0"}, env: system, contains: "v0.1.0", message: "v0.1.0 for linux on amd64"},
		{name: "help", args: []string{"--help"}},
		{name: "no version", args: []string{"newest"}, code: 2, message: "newest is not a version"},
		{name: "a path", args: []string{"v0/../../x"}, code: 2, message: "is not a version"},
		{name: "two versions", args: []string{"v1", "v2"}, code: 2, message: "one version"},
		{name: "nowhere", env: []string{"KALYPSO_INSTALL_DIR=", "HOME="}, code: 2, message: "where to?"},
		{name: "unknown system", env: []string{"KALYPSO_OS=Plan9"}, code: 3, message: "the system Plan9"},
		{name: "unknown processor", env: []string{"KALYPSO_ARCH=riscv64"}, code: 3, message: "the processor riscv64"},
		{name: "not for this system", args: []string{"v0.0.3"}, code: 3, message: "v0.0.3 has no kalypso_linux_amd64.tar.gz"},
		{name: "nothing downloads", tools: without(download), code: 4, message: "neither curl nor wget"},
		{name: "nothing verifies", tools: without("sha256sum"), code: 4, message: "neither sha256sum nor shasum"},
		{name: "nothing unpacks", tools: without("tar"), code: 4, message: "tar and gzip"},
		{name: "no unzip", env: []string{"KALYPSO_OS=MINGW64_NT-10.0"}, code: 4, message: "unzip"},
		{name: "unknown version", args: []string{"v9.9.9"}, code: 5, message: "is v9.9.9 a release"},
		{name: "no server", env: []string{"KALYPSO_DOWNLOADS=http://127.0.0.1:1"}, code: 5, message: "cannot be downloaded"},
		{name: "a cut download", args: []string{"v0.1.0"}, from: "/cut", code: 5, message: "cannot be downloaded"},
		{name: "a short download", args: []string{"v0.1.0"}, from: "/short", code: 6, message: "the download was cut"},
		{name: "a wrong checksum", args: []string{"v0.0.5"}, code: 6, message: "has the checksum"},
		{name: "no archive", args: []string{"v0.0.4"}, code: 6, message: "cannot be unpacked"},
		{name: "a symbolic link", args: []string{"v0.0.7"}, code: 6, message: "has a link, which no release has: "},
		{name: "a hard link", args: []string{"v0.0.8"}, code: 6, message: "has a link, which no release has: "},
		{name: "a link for another system", args: []string{"v0.0.7"}, env: system, code: 6, message: "has a link"},
		{name: "a folder", args: []string{"v0.0.9"}, code: 6, message: "has no kalypso"},
		{name: "another version", args: []string{"v0.0.1"}, code: 6, message: "has kalypso v0.1.0, and not v0.0.1"},
		{name: "signed", args: []string{"v0.1.0"}, cosign: `case "$*" in *'refs/tags/v0\.1\.0$'*) ;; *) exit 1 ;; esac`, contains: "v0.1.0"},
		{name: "signed newest", cosign: `case "$*" in *'refs/tags/v.*$'*) ;; *) exit 1 ;; esac`, contains: "v0.2.0"},
		{name: "signed by others", args: []string{"v0.1.0"}, cosign: "echo no such identity >&2; exit 1", code: 6, message: "no such identity"},
		{name: "no signature", args: []string{"v0.0.6"}, cosign: "exit 0", code: 5, message: "sigstore.json cannot be downloaded"},
		{name: "no folder", env: []string{"KALYPSO_INSTALL_DIR=/dev/null/bin"}, code: 7, message: "cannot be written to"},
		{name: "does not run", args: []string{"v0.0.2"}, code: 8, message: "does not run here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.tools == nil {
				c.tools = all
			}
			path := tools(t, busybox, c.tools...)
			if c.cosign != "" {
				if err := os.WriteFile(filepath.Join(path, "cosign"), []byte("#!/bin/sh\n"+c.cosign+"\n"), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			folder := filepath.Join(t.TempDir(), "a folder", "bin")
			cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{script}, c.args)...)
			cmd.Dir = t.TempDir()
			cmd.Env = append([]string{"PATH=" + path, "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server.URL + c.from}, c.env...)
			if c.code == 3 {
				cmd.Env = append(slices.Clone(cmd.Env[:3]), append(system, c.env...)...)
			}
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.message) {
				t.Errorf("exit %d, and not %d with %q:\n%s", code, c.code, c.message, out)
			}
			checkInstalled(t, folder, c.contains)
		})
	}
	t.Run("in place of another", func(t *testing.T) { testReplaces(t, shell, script, tools(t, busybox, all...), server.URL) })
	t.Run("stopped", func(t *testing.T) { testStopped(t, shell, script, tools(t, busybox, all...)) })
	if busybox {
		t.Run("Windows", func(t *testing.T) {
			testWindows(t, shell, script, tools(t, busybox, append(all, "unzip")...), server.URL)
		})
	}
}

// checkInstalled checks that a folder has one program, or no files if contains is "".
func checkInstalled(t *testing.T, folder, contains string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*"))
	hidden, _ := filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || len(hidden) > 0 {
		t.Errorf("left: %v %v", hidden, err)
	}
	if contains == "" {
		if len(found) > 0 {
			t.Errorf("installed: %v", found)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(folder, "kalypso"))
	if err != nil || !strings.Contains(string(text), contains) || len(found) != 1 {
		t.Errorf("%v: %s %v", found, text, err)
	}
}

// testReplaces: an upgrade replaces the program, and one that fails leaves it.
func testReplaces(t *testing.T, shell []string, script, path, server string) {
	folder := t.TempDir()
	for _, c := range []struct{ version, then string }{{"v0.1.0", "v0.1.0"}, {"v0.0.2", "v0.1.0"}, {"v0.0.5", "v0.1.0"}, {"v0.2.0", "v0.2.0"}} {
		cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{script, c.version})...)
		cmd.Env = []string{"PATH=" + path + ":" + folder, "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server + "/"}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (c.version == c.then) || strings.Contains(string(out), "not in PATH") {
			t.Errorf("%s: %v\n%s", c.version, err, out)
		}
		checkInstalled(t, folder, c.then)
	}
	if err := os.Remove(filepath.Join(folder, "kalypso")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "kalypso"), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{script})...)
	cmd.Env = []string{"PATH=" + path, "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server}
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 7 || !strings.Contains(string(out), "is a folder") {
		t.Errorf("%v\n%s", err, out)
	}
}

// testStopped checks that a user who stops it during a download finds no files.
func testStopped(t *testing.T, shell []string, script, path string) {
	folder := t.TempDir()
	asked := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{script})...)
	cmd.Env = []string{"PATH=" + path, "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server.URL}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it succeeds")
	}
	checkInstalled(t, folder, "")
}

func testWindows(t *testing.T, shell []string, script, path, server string) {
	folder := t.TempDir()
	cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{script, "v0.1.0"})...)
	cmd.Env = []string{"PATH=" + path, "KALYPSO_INSTALL_DIR=" + folder, "KALYPSO_DOWNLOADS=" + server, "KALYPSO_OS=MINGW64_NT-10.0", "KALYPSO_ARCH=x86_64"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "kalypso.exe")); err != nil || string(text) != "MZ" {
		t.Errorf("%s %v", text, err)
	}
}
