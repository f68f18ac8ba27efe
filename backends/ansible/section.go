package ansible

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// unitText returns a unit's file; "" for one that a Debian package contains. section is the section
// that its type must have. If a unit starts at boot and does not name a target, unitText uses the
// target of its type.
func (f *folder) unitText(name string, u model.Unit, section, wantedBy string,
	ref model.Ref) (string, bool) {
	if !own(u) {
		return "", true
	}
	var out strings.Builder
	ok := true
	for _, s := range []struct {
		name, field string
		value       *model.Value
	}{
		{"Unit", "unit", u.Unit}, {"Service", "service", u.Service}, {"Socket", "socket", u.Socket},
		{"Timer", "timer", u.Timer}, {"Path", "path", u.Path}, {"Install", "install", u.Install},
	} {
		general := s.name == "Unit" || s.name == "Install"
		switch {
		case s.value == nil && s.name == section:
			f.report(diag.BadSpec, ref, "%s has no section [%s], without which systemd does not load it",
				name, section).
				hint("add " + s.field + ": {...}")
			ok = false
		case s.value == nil && s.name == "Install" && u.Enabled:
			fmt.Fprintf(&out, "[Install]\nWantedBy=%s\n\n", wantedBy)
		case s.value == nil:
		case !general && s.name != section:
			f.report(diag.BadSpec, ref.At(s.field), "%s has a section [%s], which systemd passes over", name,
				s.name).
				hint("give the section to a unit of its type")
			ok = false
		default:
			fmt.Fprintf(&out, "[%s]\n", s.name)
			ok = f.directives(&out, *s.value, ref.At(s.field)) && ok
			out.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(out.String(), "\n"), ok
}

// directives writes the directives of a section, sorted; a list is a directive
// several times.
func (f *folder) directives(out *strings.Builder, section model.Value, ref model.Ref) bool {
	ok := true
	for _, d := range section.Fields() {
		values := d.Value.Elems()
		if d.Value.Kind() != model.List {
			values = []model.Value{d.Value}
		}
		at := ref.At(model.Label(d.Name))
		if !directive.MatchString(d.Name) {
			f.report(diag.BadSpec, at, "%q is no directive of systemd", d.Name)
			ok = false
		}
		for _, v := range values {
			if !v.IsScalar() || !oneLine(v.Text()) {
				f.report(diag.BadSpec, at, "%s of %s cannot stand in one line of a unit", v, d.Name).
					hint("put what it says into a file, and name that")
				ok = false
			}
			fmt.Fprintf(out, "%s=%s\n", d.Name, v.Text())
		}
	}
	return ok
}

// oneLine reports whether systemd reads a text as one line: a backslash at its end
// would continue it.
func oneLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) &&
		!strings.HasSuffix(strings.TrimRight(s, " \t"), `\`)
}

// hardening confines a service (systemd.exec(5)). A directive of the service itself takes
// precedence.
var hardening = []string{
	"LockPersonality=true",
	"NoNewPrivileges=true",
	"PrivateDevices=true",
	"PrivateTmp=true",
	"ProtectControlGroups=true",
	"ProtectHome=true",
	"ProtectKernelModules=true",
	"ProtectKernelTunables=true",
	"ProtectSystem=strict",
	"RestrictSUIDSGID=true",
}

// dropIn returns the platform's settings for a service: the place of its configuration, the limits
// of the namespace service, and its confinement.
func (f *folder) dropIn(u model.Unit) string {
	lines := []string{"[Service]"}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if c := f.spec.Config; c.Format == string(model.Env) {
		add("EnvironmentFile=%s", c.Path)
	} else {
		add("Environment=PLATFORM_CONFIG=%s", c.Path)
	}
	if s := f.spec.Secrets; s != nil && s.Format == string(model.Env) {
		add("EnvironmentFile=%s", s.Path)
	} else if s != nil {
		add("Environment=PLATFORM_SECRETS=%s", s.Path)
	}
	l := f.service.Machine.Limits
	for _, limit := range []struct {
		directive, value string
		given            bool
	}{
		{"CPUQuota", l.CPU, l.CPU != ""},
		{"MemoryMax", l.Memory, l.Memory != ""},
		{"TasksMax", fmt.Sprint(l.Tasks), l.Tasks > 0},
		{"LimitNOFILE", fmt.Sprint(l.OpenFiles), l.OpenFiles > 0},
	} {
		if limit.given {
			add("%s=%s", limit.directive, limit.value)
		}
	}
	if u.Harden {
		lines = append(lines, f.confinement(u.Service)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// confinement returns the directives that confine a service to its user, and to
// the directories of that user.
func (f *folder) confinement(service *model.Value) []string {
	var lines []string
	writable := []string{}
	home := false
	for _, d := range f.spec.Directories {
		if d.Path != "/etc/"+f.spec.User {
			writable = append(writable, d.Path)
		}
		home = home || strings.HasPrefix(d.Path, "/home/") || strings.HasPrefix(d.Path, "/root/") ||
			strings.HasPrefix(d.Path, "/run/user/")
	}
	for _, line := range append([]string{"User=" + f.spec.User}, hardening...) {
		name, _, _ := strings.Cut(line, "=")
		if service != nil {
			if _, given := service.Lookup(name); given {
				continue
			}
		}
		if name == "ProtectHome" && home {
			continue // the user's own directories would be hidden
		}
		lines = append(lines, line)
	}
	// in addition to the service's own paths
	return append(lines, "ReadWritePaths="+strings.Join(writable, " "))
}
