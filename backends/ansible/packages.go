package ansible

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// debPackage is a package at one version, as `dpkg-query` would list it.
type debPackage struct {
	Name     string `yaml:"name"`
	Spec     string `yaml:"spec"` // name=version
	URL      string `yaml:"url,omitempty"`
	Checksum string `yaml:"checksum,omitempty"`
}

// longestPin is below the 255 bytes of a file's name, as what writes a file gives it
// a longer one until it is whole.
const longestPin = 200

// packages adds Debian packages, and the pin that keeps other versions away: a
// priority over 1000 also downgrades (apt_preferences(5)). The pin's file has
// no extension, and a name of the few characters that apt takes: it passes others
// over without a word.
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
		f.wanted.Packages = append(f.wanted.Packages,
			debPackage{Name: name, Spec: name + "=" + d.Version, URL: d.URL, Checksum: d.Digest})
		if pins.Len() > 0 {
			pins.WriteByte('\n')
		}
		fmt.Fprintf(&pins, "Package: %s\nPin: version %s\nPin-Priority: 1001\n", name, d.Version)
	}
	if len(f.wanted.Packages) == 0 {
		return
	}
	a := f.assignment
	pin := "/etc/apt/preferences.d/" +
		model.ShortName("kalypso-"+a.Environment+"-"+a.ClusterType+"-"+a.DeploymentTarget, longestPin)
	f.wanted.Pins = &document{Path: pin, Source: source(pin)}
	f.write(source(pin), []byte(pins.String()), false)
	f.thing(fileThing, pin, a.Ref)
}

// fetchable says whether what a URL names can be fetched and verified; also where
// there is no URL.
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
