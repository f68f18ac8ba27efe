package zarf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// filesFolder contains the files of a package by their path on the machine.
const filesFolder = "files"

// machineFiles adds the files of a package, by path. Zarf only copies them to the machine
// that deploys, as the user who deploys. It does not install Debian packages, and does not
// know systemd.
func (f *folder) machineFiles(p *model.Package) {
	const elsewhere = "give the cluster type a reconciler for machines, such as Ansible, or leave " +
		"it out of the policy that selects it"
	if len(p.Deb) > 0 {
		f.refuse("package.deb", "Zarf installs no Debian packages", elsewhere)
	}
	if len(p.Units) > 0 {
		f.refuse("package.units", "Zarf installs and starts no systemd units", elsewhere)
	}
	var unpinned, modes []string
	for _, target := range slices.Sorted(maps.Keys(p.Files)) {
		m := p.Files[target]
		f.machineFile(target, m)
		for dir := path.Dir(target); dir != "/" && dir != "."; dir = path.Dir(dir) {
			if _, ok := p.Files[dir]; ok {
				f.report(diag.New(diag.BadFile, dir+" is a file and the folder of "+target).
					On("manifests.package.files").At(f.a.Ref.At("manifests.package.files"),
					"").Hinting("give one of them another path"))
			}
		}
		if m.Content == nil && m.Digest == "" {
			unpinned = append(unpinned, m.URL)
		}
		if m.Mode != "0600" && m.Mode != "0700" {
			modes = append(modes, target)
		}
	}
	if len(unpinned) > 0 {
		f.report(diag.New(diag.Unpinned,
			"files of the package have no digest: "+kubernetes.Few(unpinned)).
			On("manifests.package.files").At(f.a.Ref.At("manifests.package.files"),
			"").Hinting("give each its digest"))
	}
	if len(modes) > 0 {
		f.report(diag.New(diag.NoEffect, "Zarf gives files the mode 0600, or 0700 where they can be "+
			"executed: "+kubernetes.Few(modes)).
			On("manifests.package.files").At(f.a.Ref.At("manifests.package.files"), "").
			Hinting(`set mode: "0600" or "0700"`))
	}
}

// machineFile adds a file, from a text of the folder or from a URL.
func (f *folder) machineFile(target string, m model.MachineFile) {
	field := "package.files." + model.Label(target)
	if m.Owner != "" || m.Group != "" {
		f.refuse(field, "Zarf leaves files with the user who deploys the package",
			"remove owner and group")
	}
	mode, err := strconv.ParseUint(m.Mode, 8, 32)
	if err != nil {
		f.refuse(field+".mode", fmt.Sprintf("%q are no permissions", m.Mode),
			"write them in octal, such as 0644")
	}
	out := file{Target: target, Executable: mode&0o111 != 0}
	switch {
	case m.Content != nil:
		name := filesFolder + target
		if why := unwritable(name); why != "" {
			f.report(diag.New(diag.BadFile, target+" cannot be kept in the output: "+why).
				On("manifests."+field).At(f.a.Ref.At("manifests."+field),
				"").Hinting("give it a url instead of content"))
			return
		}
		if strings.Contains(*m.Content, "\r\n") {
			f.refuse(field+".content", "Zarf makes line feeds of the line ends of Windows",
				"give the file a url, or other line ends")
		}
		sum := sha256.Sum256([]byte(*m.Content))
		out.Source, out.Shasum = f.pathOf(name), hex.EncodeToString(sum[:])
		f.files = append(f.files, backends.File{Path: name, Data: []byte(*m.Content)})
	case m.URL != "":
		out.Source, out.Shasum = m.URL, strings.TrimPrefix(m.Digest, "sha256:")
	default:
		f.refuse(field, "the file has neither content nor a url", "give it one")
		return
	}
	f.component.Files = append(f.component.Files, out)
}

// unwritable returns the reason why a path is not valid in the output, although the schema accepts
// it: git and kalypso reserve some names. It returns "" for a valid path.
func unwritable(name string) string {
	for e := range strings.SplitSeq(name, "/") {
		plain, _, _ := strings.Cut(e, ":")
		switch {
		case strings.EqualFold(strings.TrimRight(plain, ". "), ".git"):
			return e + " is git's own"
		case e == "" || e == "." || e == ".." || strings.Contains(e, `\`):
			return "it is no clean path"
		case strings.HasPrefix(e, ".kalypso-"):
			return e + " is kalypso's own"
		}
	}
	return ""
}

// marker matches the text that Zarf replaces in everything that it deploys, and in zarf.yaml, if it
// knows the name (variables.ReplaceTextTemplate of Zarf).
var marker = lazyregexp.New(`###ZARF_[A-Z0-9_]+###`)

// maxLine is the length of a line from which Zarf loses the rest of the file. It reads files with a
// buffer of this size, and does not check whether the buffer was large enough.
const maxLine = 1 << 20

// checkFiles reports files that Zarf would not deploy as they are.
func (f *folder) checkFiles() {
	for _, file := range f.files {
		if found := string(marker.Find(file.Data)); found != "" {
			ref, on := f.origin(file.Path, found)
			f.report(diag.New(diag.UnsupportedManifests,
				fmt.Sprintf("Zarf would replace %s in %s when it deploys the package", found, file.Path)).
				On(on).At(ref,
				"").Hinting(
				"write it otherwise: the site gets what the platform says, as every other cluster does"))
		}
		n := 0
		for line := range bytes.SplitSeq(file.Data, []byte("\n")) {
			n = max(n, len(line))
		}
		if n >= maxLine {
			ref, on := f.origin(file.Path, "")
			f.report(diag.New(diag.TooLarge,
				fmt.Sprintf("%s has a line of %d bytes: Zarf loses what follows one of %d", file.Path, n,
					maxLine)).
				On(on).At(ref, "").Hinting("break the value into lines, or into several values"))
		}
	}
}

// origin returns the source of the part of a file that contains a text: a reference, and the
// path there or in the composed values.
func (f *folder) origin(file, text string) (ref model.Ref, on string) {
	// ownValues are the values of a chart from the application.
	path, ownValues := "manifests", ""
	if h := f.a.Manifests.Helm; h != nil && h.Values != nil {
		ownValues = h.Values.String()
	}
	switch {
	case file == kubernetes.NamespaceFile:
		return f.a.NamespaceService.Ref, ""
	case file == valuesFile && strings.Contains(ownValues, text):
		path = "manifests.helm.values"
	case file == kubernetes.PlatformConfigFile || file == valuesFile:
		return f.a.Ref, holder(f.a.Values, text)
	case strings.HasPrefix(file, filesFolder+"/"):
		path = "manifests.package.files"
	}
	return f.a.Ref.At(path), path
}

// holder returns the path of the first value that contains a text. It returns "" for an
// empty text.
func holder(v model.Value, text string) string {
	if text == "" {
		return ""
	}
	for _, field := range v.Fields() {
		if strings.Contains(field.Value.String(), text) || strings.Contains(field.Name, text) {
			return model.JoinPath(model.Label(field.Name), holder(field.Value, text))
		}
	}
	return ""
}

// checkDefinition reports text in zarf.yaml itself that Zarf would replace.
func checkDefinition(ct *backends.ClusterType, file backends.File) []diag.Diagnostic {
	found := marker.Find(file.Data)
	if found == nil {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadSpec,
		fmt.Sprintf("Zarf would replace %s in %s when it makes the package", found,
			path.Join(ct.Name, file.Path))).
		At(ct.Ref, "").Hinting(
		"write it otherwise in the cluster type's description or the assignments' sources")}
}
