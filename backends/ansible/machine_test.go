package ansible_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kalypso-io/kalypso/backends/ansible"
	"github.com/kalypso-io/kalypso/compiler/model"
	bt "github.com/kalypso-io/kalypso/internal/testing/backendtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// tools are the programs that the tests run, by the Debian package that has them.
var tools = map[string]string{
	"ansible-playbook": "ansible-core", "ansible-lint": "ansible-lint", "debootstrap": "debootstrap", "dpkg-deb": "dpkg",
}

// needTools installs the programs that are missing, in runs of the tests that may.
func needTools(t *testing.T) {
	t.Helper()
	isolated.Slow(t, "it needs root and a Debian with Ansible")
	unlock := lock(t)
	defer unlock()
	var missing []string
	for tool, pkg := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			if _, err := os.Stat("/usr/sbin/" + tool); err != nil {
				missing = append(missing, pkg)
			}
		}
	}
	if len(missing) > 0 {
		asRoot(t, "apt-get", "update")
		asRoot(t, append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--no-install-recommends"}, missing...)...)
	}
}

// asRoot runs a command as root. Tests of machines need it.
func asRoot(t testing.TB, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		args = append([]string{"sudo", "--non-interactive"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// cacheDir returns the folder for files that take a minute to make. They stay there between
// runs.
func cacheDir(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "kalypso-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lock keeps other test processes from installing at the same time.
func lock(t testing.TB) (unlock func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(cacheDir(t), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() }
}

// debian returns a minimal Debian with Ansible. It makes it once per machine.
func debian(t *testing.T, release string) string {
	t.Helper()
	unlock := lock(t)
	defer unlock()
	root := filepath.Join(cacheDir(t), "debian-"+release+"-1")
	if _, err := os.Stat(root); err == nil {
		return root
	}
	half := root + ".half"
	asRoot(t, "rm", "-rf", half)
	asRoot(t, "debootstrap", "--variant=minbase", release, half)
	in(t, half, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "--no-install-recommends", "ansible-core", "python3-apt", "git", "sudo")
	asRoot(t, "rm", "-rf", half+"/var/cache/apt/archives", half+"/var/lib/apt/lists", half+"/etc/apt/sources.list")
	asRoot(t, "mkdir", "-p", half+"/var/cache/apt/archives/partial", half+"/var/lib/apt/lists/partial")
	asRoot(t, "mv", half, root)
	return root
}

// command returns the arguments that run a command in a root file system. The mounts are not
// visible to other processes, and end with the command.
func command(root string, args ...string) []string {
	return append([]string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc=" + root + "/proc", "chroot", root,
		"env", "HOME=/root", "TMPDIR=/tmp", "LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, args...)
}

func in(t testing.TB, root string, args ...string) string {
	t.Helper()
	return asRoot(t, command(root, args...)...)
}

// machine is a Debian in which everything is real except systemctl.
type machine struct {
	*testing.T
	root string
}

func newMachine(t *testing.T, release string) *machine {
	t.Helper()
	needTools(t)
	base, root := debian(t, release), filepath.Join(t.TempDir(), "root")
	asRoot(t, "cp", "--archive", base, root)
	t.Cleanup(func() { asRoot(t, "rm", "-rf", root) })
	m := &machine{t, root}
	m.write("/usr/bin/systemctl", readFile(t, "testdata/machine/systemctl"), 0o755)
	m.write("/etc/apt/sources.list", "deb [trusted=yes] file:/srv/packages ./\n", 0o644)
	return m
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// write writes a file of the machine.
func (m *machine) write(name, text string, mode os.FileMode) {
	m.Helper()
	own := filepath.Join(m.TempDir(), "file")
	if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
	asRoot(m, "install", "-D", "--mode", strconv.FormatUint(uint64(mode), 8), own, m.root+name)
}

// read returns a file of the machine. It returns "" if the file does not exist.
func (m *machine) read(name string) string {
	m.Helper()
	return m.sh(`if [ -e "$1" ]; then cat -- "$1"; fi`, name)
}

// sh runs a script of the shell on the machine.
func (m *machine) sh(script string, args ...string) string {
	m.Helper()
	return in(m, m.root, append([]string{"sh", "-ec", script, "sh"}, args...)...)
}

// install writes the tree of a platform to /srv/tree, and returns the tree with its diagnostics.
func (m *machine) install(p bt.Platform) bt.Tree {
	m.Helper()
	tree := bt.Build(m.T, ansible.New(), p)
	dir := filepath.Join(m.TempDir(), "tree")
	writeTree(m, dir, tree)
	asRoot(m, "rm", "-rf", m.root+"/srv/tree")
	asRoot(m, "cp", "-r", dir, m.root+"/srv/tree")
	return tree
}

func writeTree(t testing.TB, dir string, tree bt.Tree) {
	t.Helper()
	for name, data := range tree.Files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recap is the summary that a run of a playbook prints at its end.
type recap struct {
	changed, failed, rescued int
	out                      string
}

func (r recap) String() string {
	return fmt.Sprintf("changed=%d failed=%d rescued=%d\n%s", r.changed, r.failed, r.rescued, r.out)
}

var counts = regexp.MustCompile(`(?m)^\S+ +: ok=\d+ +changed=(\d+) +unreachable=0 +failed=(\d+) +skipped=\d+ +rescued=(\d+)`)

// play runs a playbook of the tree on the machine.
func (m *machine) play(playbook string, args ...string) recap {
	m.Helper()
	return m.ends(append([]string{"env", "--chdir=/srv/tree", "ansible-playbook", "--diff", playbook}, args...)...)
}

// ends runs something on the machine that ends with a recap.
func (m *machine) ends(args ...string) recap {
	m.Helper()
	args = command(m.root, args...)
	if os.Geteuid() != 0 {
		args = append([]string{"sudo", "--non-interactive"}, args...)
	}
	out, _ := exec.Command(args[0], args[1:]...).CombinedOutput() // a failure is in the recap
	return m.recap(out)
}

func (m *machine) recap(out []byte) recap {
	m.Helper()
	i := bytes.LastIndex(out, []byte("PLAY RECAP"))
	found := counts.FindSubmatch(out[max(i, 0):])
	if found == nil {
		m.Fatalf("the playbook does not end:\n%s", out)
	}
	r := recap{out: string(out)}
	for n, to := range []*int{&r.changed, &r.failed, &r.rescued} {
		*to, _ = strconv.Atoi(string(found[n+1]))
	}
	return r
}

// site runs site.yml on the only host of the inventory, which is the machine.
func (m *machine) site(args ...string) recap {
	m.Helper()
	return m.play("site.yml", append([]string{"--connection=local"}, args...)...)
}

// told returns the commands to systemctl since the last call.
func (m *machine) told() string {
	m.Helper()
	return m.sh("cat /run/systemctl/log 2>/dev/null || true; rm -f /run/systemctl/log")
}

const defaults = `{"interval": "15m", "maxFailPercentage": 0, "python": "/usr/bin/python3", "stateDirectory": "/var/lib/kalypso"}`

func value(t *testing.T, text string) *model.Value {
	v := bt.Value(t, text)
	return &v
}

func text(s string) *string { return &s }

// one is the inventory of a machine.
var one = []model.Cluster{{Name: "one", Address: "127.0.0.1"}}
