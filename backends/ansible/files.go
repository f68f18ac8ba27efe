package ansible

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// machineFile is a file of the machine, from the folder or from a URL.
type machineFile struct {
	Path     string `yaml:"path"`
	Source   string `yaml:"source,omitempty"`
	URL      string `yaml:"url,omitempty"`
	Checksum string `yaml:"checksum,omitempty"`
	Owner    string `yaml:"owner"`
	Group    string `yaml:"group"`
	Mode     string `yaml:"mode"`
}

// machineFiles adds the files of a package.
func (f *folder) machineFiles(files map[string]model.MachineFile) {
	for _, name := range sortedKeys(files) {
		file, ref := files[name], f.manifest("package.files."+model.Label(name))
		out := machineFile{
			Path: name, URL: file.URL, Checksum: file.Digest, Mode: file.Mode,
			Owner: cmp.Or(file.Owner, "root"), Group: cmp.Or(file.Group, "root"),
		}
		switch {
		case !machinePath.MatchString(name):
			f.report(diag.BadSpec, ref, "%q is no absolute path of plain names", name)
			continue
		case strings.HasPrefix(name+"/", f.options.StateDirectory+"/"):
			f.report(diag.BadSpec, ref, "%s is in the folder in which kalypso keeps its records",
				name).hint("give it another path")
			continue
		case systemDirectory(name) && strings.Count(name, "/") > 1:
			f.report(diag.BadSpec, ref, "%s is a directory of the system",
				name).hint("give the file's path, with its name")
			continue
		case !fileMode.MatchString(file.Mode) || !userName.MatchString(out.Owner) ||
			!userName.MatchString(out.Group):
			f.report(diag.BadSpec, ref, "%s has the mode %q, the owner %q and the group %q, which cannot be",
				name, file.Mode, out.Owner, out.Group)
			continue
		case (file.Content == nil) == (file.URL == ""):
			f.report(diag.BadSpec, ref, "%s has neither a content nor a url, or both", name)
			continue
		case !f.fits(name, ref) || !f.fetchable(file.URL, file.Digest, ref):
			continue
		}
		if file.Content != nil {
			if !f.placeable(name, ref) {
				continue
			}
			out.Source = source(name)
			f.write(out.Source, []byte(*file.Content), false)
		}
		f.file(out, ref)
	}
}

// placeable reports whether the path of a file on the machine can be one in the
// folder: git has names of its own.
func (f *folder) placeable(name string, ref model.Ref) bool {
	for e := range strings.SplitSeq(name, "/") {
		e, _, _ = strings.Cut(strings.ToLower(e), ":")
		if e = strings.TrimRight(e, ". "); e == ".git" || strings.HasPrefix(e, ".kalypso") {
			f.report(diag.BadFile, ref, "a repository cannot hold %s", name).hint("fetch the file by url, " +
				"or bring it with a package")
			return false
		}
	}
	return true
}

func (f *folder) file(file machineFile, ref model.Ref) {
	f.thing(fileThing, file.Path, ref)
	f.spec.Files = append(f.spec.Files, file)
}

// text adds a file that kalypso itself writes for root.
func (f *folder) text(name, content string, ref model.Ref) {
	f.write(source(name), []byte(content), false)
	f.file(machineFile{Path: name, Source: source(name), Owner: "root", Group: "root", Mode: "0644"},
		ref)
}

// source returns the path in the folder of a file for the machine.
func source(name string) string { return path.Join("files", name) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// debPackage is a package at one version, as `dpkg-query` would list it.
type debPackage struct {
	Name     string `yaml:"name"`
	Spec     string `yaml:"spec"` // name=version
	URL      string `yaml:"url,omitempty"`
	Checksum string `yaml:"checksum,omitempty"`
}

// longestPin is below the 255 bytes of a file's name, because the writer of a file gives it a
// longer name until the file is complete.
const longestPin = 200

// packages adds Debian packages, and the pin that prevents other versions. A priority over
// 1000 also downgrades (apt_preferences(5)). The pin's file has no extension, and its name
// has only the characters that apt accepts, because apt ignores other files without a
// message.
func (f *folder) packages(debs map[string]model.Deb) {
	var pins strings.Builder
	for _, name := range sortedKeys(debs) {
		d, ref := debs[name], f.manifest("package.deb."+model.Label(name))
		switch {
		case !debName.MatchString(name) || !debVersion.MatchString(d.Version):
			f.report(diag.BadSpec, ref, "%q at version %q is no Debian package", name, d.Version)
			continue
		case !f.fetchable(d.URL, d.Digest, ref):
			continue
		}
		f.thing(packageThing, name, ref)
		f.spec.Packages = append(f.spec.Packages,
			debPackage{Name: name, Spec: name + "=" + d.Version, URL: d.URL, Checksum: d.Digest})
		if pins.Len() > 0 {
			pins.WriteByte('\n')
		}
		fmt.Fprintf(&pins, "Package: %s\nPin: version %s\nPin-Priority: 1001\n", name, d.Version)
	}
	if len(f.spec.Packages) == 0 {
		return
	}
	a := f.assignment
	pin := "/etc/apt/preferences.d/" +
		model.ShortName("kalypso-"+a.Environment+"-"+a.ClusterType+"-"+a.DeploymentTarget, longestPin)
	f.spec.Pins = &document{Path: pin, Source: source(pin)}
	f.write(source(pin), []byte(pins.String()), false)
	f.thing(fileThing, pin, a.Ref)
}

// fetchable reports whether the content of a URL can be fetched and verified. Without a URL
// it returns true.
func (f *folder) fetchable(url, digest string, ref model.Ref) bool {
	switch {
	case url == "" && digest != "":
		f.report(diag.BadSpec, ref, "there is a digest, and no url of what it is the digest of").
			hint("remove the digest: what the machine's own package sources have is signed")
	case url == "":
		return true
	case !httpURL.MatchString(url) || templated(url):
		f.report(diag.BadSpec, ref, "%q is no URL", url)
	case digest == "":
		f.report(diag.Unpinned, ref, "what is fetched from %s has no digest", url).
			hint(`add digest: "sha256:...", which sha256sum prints`)
		f.ds[len(f.ds)-1].Severity = diag.Error
	case !sha256.MatchString(digest):
		f.report(diag.BadSpec, ref, "%q is no digest", digest)
	default:
		return true
	}
	return false
}

const unitDirectory = "/etc/systemd/system/"

// unit is a unit that the role runs. If it is not enabled, the role only keeps it up to
// date.
type unit struct {
	Name    string `yaml:"name"`
	Enabled bool   `yaml:"enabled"`
	// Running says that the unit is always active. Every run of the role would start a unit
	// that ends by itself.
	Running bool `yaml:"running"`
	// Reads are the files that the unit is restarted for.
	Reads []string `yaml:"reads"`
}

// unitTypes are the types of units in the order in which they start: a socket cannot be
// opened once its service runs. Each has its own section, and the target that starts it at
// boot.
var unitTypes = []struct{ suffix, section, wantedBy string }{
	{".socket", "Socket", "sockets.target"},
	{".service", "Service", "multi-user.target"},
	{".path", "Path", "paths.target"},
	{".timer", "Timer", "timers.target"},
}

// units adds the units of a package. It adds the file of a unit unless a Debian package contains
// it, and for each service the drop-in with the platform's settings.
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
				out.Reads = append(out.Reads, f.spec.Config.Path)
				if f.spec.Secrets != nil {
					out.Reads = append(out.Reads, f.spec.Secrets.Path)
				}
				if f.spec.Pins != nil {
					out.Reads = append(out.Reads, f.spec.Pins.Path)
				}
			}
			out.Reads = append(out.Reads, reads[name]...)
			if template := templateOf(name); name == template {
				continue // only its instances run
			} else if of, there := units[template]; there && template != "" {
				out.Reads = append(out.Reads, f.unitFiles(template, of)...)
			}
			// A unit that a Debian package contains, without anything of kalypso's.
			if len(out.Reads) == 0 {
				out.Reads = append(out.Reads, f.spec.Pins.Path)
			}
			f.spec.Units = append(f.spec.Units, out)
			// Assignments on a machine share the unit, even if a package contains it.
			f.objects = append(f.objects, backends.Object{Group: "machine", Kind: "unit", Name: name})
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

// templateOf returns the template of an instance, or the name itself if it is a template. It
// returns "" for other units.
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

// runnable reports whether systemd can start a unit, and refuses other units.
func (f *folder) runnable(name string, units map[string]model.Unit, ref model.Ref) bool {
	u, template := units[name], units[templateOf(name)]
	switch stem := strings.TrimSuffix(name, path.Ext(name)); {
	case stem == "":
		f.report(diag.BadSpec, ref, "%q is no name of a unit", name)
	case u.Enabled && strings.HasSuffix(stem, "@"):
		f.report(diag.BadSpec, ref, "%s is a template, of which only instances can be started", name).
			hint("set enabled: false, and add an instance such as " + stem + "one" + path.Ext(name))
	case !own(u) && !own(template) && f.spec.Pins == nil:
		f.report(diag.BadSpec, ref,
			"%s has no section, and there is no Debian package that could bring it", name).
			hint("write the unit's sections, or add the package to deb")
	default:
		return true
	}
	return false
}

// own reports whether kalypso writes the unit. If not, a Debian package contains it.
func own(u model.Unit) bool {
	return u.Unit != nil || u.Service != nil || u.Socket != nil || u.Timer != nil || u.Path != nil ||
		u.Install != nil
}

// ends reports whether the unit is a service that ends by itself.
func ends(u model.Unit) bool {
	if u.Service == nil {
		return false
	}
	kind, _ := u.Service.Lookup("Type")
	stays, _ := u.Service.Lookup("RemainAfterExit")
	return kind.Text() == "oneshot" &&
		!slices.Contains([]string{"true", "yes", "on", "1"}, stays.Text())
}

// readers returns the package's files that each unit reads: files that its sections name, or
// a folder above them. All services read a file that no unit names. A unit from a Debian
// package reads all files.
func (f *folder) readers(units map[string]model.Unit) map[string][]string {
	reads := map[string][]string{}
	for _, file := range f.spec.Files {
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

// names reports whether a unit names a file, or a folder above it that is not the
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

// mentions reports whether a text contains a path, and not only as the beginning of a longer path.
func mentions(text, p string) bool {
	for {
		_, after, found := strings.Cut(text, p)
		if !found {
			return false
		}
		if rest := strings.TrimPrefix(after, "/"); rest == "" ||
			!strings.ContainsRune(pathCharacters, rune(rest[0])) {
			return true
		}
		text = after
	}
}

const pathCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@:+-/%*"
