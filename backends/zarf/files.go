package zarf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// filesFolder holds the files of a package by their path on the machine.
const filesFolder = "files"

// machineFiles adds the files of a package, by path. Zarf puts them on the
// machine that deploys, as the user who deploys, and nothing else: it installs no
// Debian packages, and knows nothing of systemd.
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
		f.report(diag.New(diag.Unpinned, "files of the package have no digest: "+few(unpinned)).
			On("manifests.package.files").At(f.a.Ref.At("manifests.package.files"), "").Hinting("give each its digest"))
	}
	if len(modes) > 0 {
		f.report(diag.New(diag.NoEffect, "Zarf gives files the mode 0600, or 0700 where they can be executed: "+few(modes)).
			On("manifests.package.files").At(f.a.Ref.At("manifests.package.files"), "").
			Hinting(`set mode: "0600" or "0700"`))
	}
}

// machineFile adds a file: a text of the folder, or what lies at a URL.
func (f *folder) machineFile(target string, m model.MachineFile) {
	field := "package.files." + model.Label(target)
	if m.Owner != "" || m.Group != "" {
		f.refuse(field, "Zarf leaves files with the user who deploys the package", "remove owner and group")
	}
	mode, err := strconv.ParseUint(m.Mode, 8, 32)
	if err != nil {
		f.refuse(field+".mode", fmt.Sprintf("%q are no permissions", m.Mode), "write them in octal, such as 0644")
	}
	out := file{Target: target, Executable: mode&0o111 != 0}
	switch {
	case m.Content != nil:
		name := filesFolder + target
		if why := unwritable(name); why != "" {
			f.report(diag.New(diag.BadFile, target+" cannot be kept in the output: "+why).
				On("manifests."+field).At(f.a.Ref.At("manifests."+field), "").Hinting("give it a url instead of content"))
			return
		}
		if strings.Contains(*m.Content, "\r\n") {
			f.refuse(field+".content", "Zarf makes line feeds of the line ends of Windows",
				"give the file a url, or other line ends")
		}
		sum := sha256.Sum256([]byte(*m.Content))
		out.Source, out.Shasum = f.in(name), hex.EncodeToString(sum[:])
		f.files = append(f.files, backends.File{Path: name, Data: []byte(*m.Content)})
	case m.URL != "":
		out.Source, out.Shasum = m.URL, strings.TrimPrefix(m.Digest, "sha256:")
	default:
		f.refuse(field, "the file has neither content nor a url", "give it one")
		return
	}
	f.component.Files = append(f.component.Files, out)
}

// unwritable returns why a path cannot be one of the output, for what the schema
// takes as the path of a file: names that git and kalypso keep for themselves.
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

// few lists names for people, the first ones where there are many.
func few(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
