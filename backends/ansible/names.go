package ansible

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// The forms of names on a machine. Those of schema/manifests.cue are the same;
// what comes from a pin or another program is held against them here.
var (
	userName = lazyregexp.New(`^[a-z_][a-z0-9_-]{0,31}$`) // useradd(8)
	// no "..", nothing to quote
	machinePath = lazyregexp.New(`^(/\.{0,2}[A-Za-z0-9_@:+-][A-Za-z0-9._@:+-]*)+$`)
	fileMode    = lazyregexp.New(`^0[0-7]{3}$`)                                                  //
	debName     = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]+$`)                                       // Debian Policy 5.6.1
	debVersion  = lazyregexp.New(`^([0-9]+:)?[0-9][A-Za-z0-9.+~-]*$`)                            // Debian Policy 5.6.12
	unitName    = lazyregexp.New(`^[A-Za-z0-9:_.@-]+\.(service|socket|timer|path)$`)             // systemd.unit(5)
	directive   = lazyregexp.New(`^[A-Z][A-Za-z0-9]*$`)                                          // systemd.syntax(7)
	sha256      = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)                                        //
	httpURL     = lazyregexp.New(`^https?://[!-z~]+$`)                                           // RFC 3986 has no braces
	relative    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`) //
	// git-check-ref-format(1), and nothing to quote
	revision = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/+@-]*$`)
	// a URL or user@host:path without a query
	repository = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._~:/@+%-]*$`)
	// of Ansible, and of an environment
	variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plugin   = lazyregexp.New(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*){0,2}$`) //
)

// templated says whether Ansible would take a text for a template.
func templated(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "{%") || strings.Contains(s, "{#")
}

// identifier returns a name of letters, digits and underscores that begins with
// no digit, as names of groups must. Different DNS labels stay different.
func identifier(name string) string {
	name = strings.ReplaceAll(name, "-", "_")
	if name[0] >= '0' && name[0] <= '9' || slices.Contains([]string{"all", "ungrouped", "localhost"}, name) {
		return "_" + name
	}
	return name
}

// systemDirectory says whether a directory is one that a system has, of the
// Filesystem Hierarchy Standard or of systemd: it cannot become a user's.
func systemDirectory(path string) bool {
	return strings.Count(path, "/") < 2 || systemDirectories[path]
}

var systemDirectories = func() map[string]bool {
	all := map[string]bool{}
	for parent, names := range map[string]string{
		"/etc": "apt cron.d default init.d pam.d profile.d security skel ssh ssl sudoers.d " +
			"sysctl.d systemd systemd/system systemd/user udev",
		"/usr": "bin games include lib lib32 lib64 libexec libx32 local sbin share src lib/systemd " +
			"lib/systemd/system local/bin local/etc local/lib local/sbin local/share",
		"/var": "backups cache lib local lock log mail opt run spool tmp www lib/apt lib/dpkg " +
			"lib/systemd cache/apt log/journal spool/cron",
		"/run":     "lock systemd user",
		"/lib":     "systemd systemd/system",
		"/etc/apt": "apt.conf.d keyrings preferences.d sources.list.d trusted.gpg.d",
	} {
		for name := range strings.FieldsSeq(names) {
			all[parent+"/"+name] = true
		}
	}
	return all
}()
