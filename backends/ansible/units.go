package ansible

import (
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const unitDirectory = "/etc/systemd/system/"

// unit is a unit that the role runs, or, where it is not enabled, only keeps up
// to date.
type unit struct {
	Name    string `yaml:"name"`
	Enabled bool   `yaml:"enabled"`
	// Running says that the unit is always active: one that ends by itself would be
	// started by every run.
	Running bool `yaml:"running"`
	// Reads are the files that the unit is restarted for.
	Reads []string `yaml:"reads"`
}

// unitTypes are the types of units in the order in which they start: a socket
// cannot be opened once its service runs. Each has the section of its own, and
// what starts it at boot.
var unitTypes = []struct{ suffix, section, wantedBy string }{
	{".socket", "Socket", "sockets.target"},
	{".service", "Service", "multi-user.target"},
	{".path", "Path", "paths.target"},
	{".timer", "Timer", "timers.target"},
}

// units adds the units of a package: the file of one that is not brought by a
// Debian package, and for each service the drop-in with what the platform adds.
func (f *folder) units(units map[string]model.Unit) {
	reads := f.readers(units)
	for rank, t := range unitTypes {
		for _, name := range sortedKeys(units) {
			if path.Ext(name) != t.suffix {
				if rank == 0 && !unitName.MatchString(name) {
					f.report(diag.BadSpec, f.unitRef(name), "%q is no name of a unit", name)
				}
				continue
			}
			u, ref := units[name], f.unitRef(name)
			text, ok := f.unitText(name, u, t.section, t.wantedBy, ref)
			if !ok || !f.runnable(name, units, ref) || !f.placeable(name, ref) || !f.fits(name+".d", ref) {
				continue
			}
			out := unit{Name: name, Enabled: u.Enabled, Running: u.Enabled && !ends(u), Reads: []string{}}
			out.Reads = append(out.Reads, f.unitFiles(name, u)...)
			if text != "" {
				f.text(unitDirectory+name, text, ref)
			}
			if t.section == "Service" {
				f.text(unitDirectory+name+".d/50-kalypso.conf", f.dropIn(u), ref)
				out.Reads = append(out.Reads, f.wanted.Config.Path)
				if f.wanted.Secrets != nil {
					out.Reads = append(out.Reads, f.wanted.Secrets.Path)
				}
				if f.wanted.Pins != nil {
					out.Reads = append(out.Reads, f.wanted.Pins.Path)
				}
			}
			out.Reads = append(out.Reads, reads[name]...)
			if template := templateOf(name); name == template {
				continue // only its instances run
			} else if of, there := units[template]; there && template != "" {
				out.Reads = append(out.Reads, f.unitFiles(template, of)...)
			}
			if len(out.Reads) == 0 { // a unit that a package brings, without anything of ours
				out.Reads = append(out.Reads, f.wanted.Pins.Path)
			}
			f.wanted.Units = append(f.wanted.Units, out)
			f.objects = append(f.objects, unitObject(name))
		}
	}
}

// unitFiles returns the files that kalypso writes of a unit.
func (f *folder) unitFiles(name string, u model.Unit) []string {
	var out []string
	if own(u) {
		out = append(out, unitDirectory+name)
	}
	if strings.HasSuffix(name, ".service") {
		out = append(out, unitDirectory+name+".d/50-kalypso.conf")
	}
	return out
}

// templateOf returns the template that a unit is an instance of, or is itself; ""
// for none.
func templateOf(name string) string {
	stem, _, ok := strings.Cut(name, "@")
	if !ok {
		return ""
	}
	return stem + "@" + path.Ext(name)
}

func (f *folder) unitRef(name string) model.Ref {
	return f.manifest("package.units." + model.Label(name))
}

// runnable refuses what systemd cannot start.
func (f *folder) runnable(name string, units map[string]model.Unit, ref model.Ref) bool {
	u, template := units[name], units[templateOf(name)]
	switch stem := strings.TrimSuffix(name, path.Ext(name)); {
	case stem == "":
		f.report(diag.BadSpec, ref, "%q is no name of a unit", name)
	case u.Enabled && strings.HasSuffix(stem, "@"):
		f.report(diag.BadSpec, ref, "%s is a template, of which only instances can be started", name).
			hint("set enabled: false, and add an instance such as " + stem + "one" + path.Ext(name))
	case !own(u) && !own(template) && f.wanted.Pins == nil:
		f.report(diag.BadSpec, ref, "%s has no section, and there is no Debian package that could bring it", name).
			hint("write the unit's sections, or add the package to deb")
	default:
		return true
	}
	return false
}

// own says whether kalypso writes the unit, and no Debian package brings it.
func own(u model.Unit) bool {
	return u.Unit != nil || u.Service != nil || u.Socket != nil || u.Timer != nil || u.Path != nil || u.Install != nil
}

// ends says whether the unit is a service that ends by itself.
func ends(u model.Unit) bool {
	if u.Service == nil {
		return false
	}
	kind, _ := u.Service.Lookup("Type")
	stays, _ := u.Service.Lookup("RemainAfterExit")
	return kind.Text() == "oneshot" && !slices.Contains([]string{"true", "yes", "on", "1"}, stays.Text())
}

// readers returns which of the package's files each unit reads: those that its
// sections name, or a folder above them. A file that no unit names is read by all
// services, and so is each by a unit that a Debian package brings.
func (f *folder) readers(units map[string]model.Unit) map[string][]string {
	reads := map[string][]string{}
	for _, file := range f.wanted.Files {
		var named, foreign, services []string
		for _, name := range sortedKeys(units) {
			u := units[name]
			switch isService := strings.HasSuffix(name, ".service"); {
			case own(u) && names(u, file.Path):
				named = append(named, name)
			case isService && !own(u):
				foreign = append(foreign, name)
			case isService:
				services = append(services, name)
			}
		}
		if len(named) == 0 {
			named = services
		}
		for _, name := range append(named, foreign...) {
			reads[name] = append(reads[name], file.Path)
		}
	}
	return reads
}

// names says whether a unit names a file, or a folder above it that is not the
// system's.
func names(u model.Unit, file string) bool {
	for _, section := range []*model.Value{u.Unit, u.Service, u.Socket, u.Timer, u.Path} {
		if section == nil {
			continue
		}
		for p := file; !systemDirectory(p); p = path.Dir(p) {
			if mentions(section.String(), p) {
				return true
			}
		}
	}
	return false
}

// mentions says whether a path stands in a text, and not as the beginning of a
// longer one.
func mentions(text, p string) bool {
	for {
		_, after, found := strings.Cut(text, p)
		if !found {
			return false
		}
		if rest := strings.TrimPrefix(after, "/"); rest == "" || !strings.ContainsRune(pathCharacters, rune(rest[0])) {
			return true
		}
		text = after
	}
}

const pathCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@:+-/%*"
