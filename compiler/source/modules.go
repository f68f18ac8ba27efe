package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// localModuleFile replaces modules for their developers.
const localModuleFile = "cue.mod/local-module.cue"

// moduleDigest covers the files that define the modules.
func (s *scanner) moduleDigest() (Digest, error) {
	h := sha256.New()
	for _, name := range []string{moduleFile, localModuleFile} {
		data, err := s.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Digest{}, err
		}
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(data))
		if name != localModuleFile {
			continue
		}
		for _, dir := range replacements(s.Root, data) {
			hashTree(dir, ".", map[string]bool{}, func(line string) { h.Write([]byte(line)) })
		}
	}
	return Digest(h.Sum(nil)), nil
}

// replacements returns the folders that the strings of a file may name as replacements of a
// module, as absolute paths.
func replacements(root string, data []byte) []string {
	f, err := parser.ParseFile(localModuleFile, data)
	if err != nil {
		return nil // loading reports it
	}
	var out []string
	ast.Walk(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := literal.Unquote(lit.Value); err == nil &&
				(strings.HasPrefix(text, ".") || filepath.IsAbs(text)) {
				if !filepath.IsAbs(text) {
					text = filepath.Join(root, text)
				}
				out = append(out, text)
			}
		}
		return true
	}, nil)
	return out
}

// hashTree passes a line to add for everything below a folder, in a fixed order. It follows
// links; rel is the folder's path in the requested folder. An unreadable file or folder has
// a line as well, and loading reports it. hashTree enters no folder twice.
func hashTree(dir, rel string, entered map[string]bool, add func(line string)) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || entered[real] {
		add(fmt.Sprintf("%q -> %q\n", rel, real))
		return
	}
	entered[real] = true
	entries, _ := os.ReadDir(real)
	for _, e := range entries {
		name := filepath.Join(real, e.Name())
		at := path.Join(rel, e.Name())
		info, err := os.Stat(name)
		switch {
		case e.Name() == ".git":
		case err == nil && info.IsDir():
			hashTree(name, at, entered, add)
		case err == nil && info.Mode().IsRegular():
			data, _ := regular.ReadFile(name)
			add(fmt.Sprintf("%q %x\n", at, sha256.Sum256(data)))
		default:
			add(fmt.Sprintf("%q\n", at))
		}
	}
}
