package view

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"html/template"
)

// Pages that are together larger than maxUnpacked are packed, since a browser that has to
// read them all at once keeps its user waiting. A pack has pages of about packSize.
const (
	maxUnpacked = 2 << 20
	packSize    = 1 << 20
)

// packedPages are pages: as HTML, or in packs that a script of the page opens on request.
type packedPages struct {
	HTML  template.HTML
	Packs []pack // sorted by First; nil if HTML has all pages
}

// pack is pages one after the other, in gzip and base64.
type pack struct {
	First string // the path of its first page
	Data  template.HTML
}

// packer packs pages that are added in the order of their paths.
type packer struct {
	paths []string
	held  [][]byte
	size  int // of the pages in held
	packs []pack
}

func (p *packer) add(path string, html []byte) error {
	p.paths, p.held, p.size = append(p.paths, path), append(p.held, html), p.size+len(html)
	if p.packs == nil && p.size <= maxUnpacked || p.packs != nil && p.size < packSize {
		return nil
	}
	return p.flush()
}

// flush packs the held pages.
func (p *packer) flush() error {
	for len(p.held) > 0 {
		n, size := 0, 0
		for ; n < len(p.held) && size < packSize; n++ {
			size += len(p.held[n])
		}
		data, err := zipped(p.held[:n]...)
		if err != nil {
			return err
		}
		p.packs = append(p.packs, pack{p.paths[0], data})
		p.paths, p.held, p.size = p.paths[n:], p.held[n:], p.size-size
	}
	return nil
}

// zipped is a text in gzip and base64.
func zipped(parts ...[]byte) (template.HTML, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	for _, part := range parts {
		if _, err := zip.Write(part); err != nil {
			return "", err
		}
	}
	err := zip.Close()
	return template.HTML(base64.StdEncoding.EncodeToString(out.Bytes())), err
}

func (p *packer) finish() (*packedPages, error) {
	if p.packs == nil {
		return &packedPages{HTML: template.HTML(bytes.Join(p.held, nil))}, nil
	}
	err := p.flush()
	return &packedPages{Packs: p.packs}, err
}
