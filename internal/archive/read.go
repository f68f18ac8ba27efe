package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
)

// Read reads a tar archive, with or without gzip. It recognizes gzip by the first bytes. It reads
// within [DefaultLimits]. Links that stay in the archive become the files and folders that they
// lead to; others are refused.
//
// Read returns a *LimitError, a *FormatError, or an *EntryError. It returns an *EntryError if an
// entry leaves the archive, is a device or a pipe, occurs twice, or is a file and a folder at
// once. The same applies to an entry whose name has a special meaning for git or a file system.
// Names that differ only in case are two files, as they are for git, Helm and Kustomize.
func Read(data []byte) (*Tree, error) { return DefaultLimits.Read(data) }

// Read is [Read] within other limits.
func (l Limits) Read(data []byte) (*Tree, error) {
	stream := io.Reader(bytes.NewReader(data))
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(stream)
		if err != nil {
			return nil, &FormatError{Err: fmt.Errorf("this is damaged: %w", err)}
		}
		stream = unzipped
	} else if len(data) == 0 {
		return nil, &FormatError{Err: errNotArchive}
	}
	return l.Build(l.entries(&limitReader{Reader: stream, left: l.stream(), limits: l}))
}

// stream is the largest number of bytes of tar: the bytes of the files, and for each entry its
// header, further headers for a long name, and its padding.
func (l Limits) stream() int64 { return l.Total + int64(l.Entries)*(4*512+2*int64(l.Path)) + 1<<20 }

// limitReader ends a stream that is longer than an archive within the limits can be, for any
// contents of its headers.
type limitReader struct {
	io.Reader
	left   int64
	limits Limits
}

func (b *limitReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &LimitError{Most: fmt.Sprintf("at most %d bytes", b.limits.Total)}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.Reader.Read(p)
	b.left -= int64(n)
	return n, err
}

// entries reads a tar stream to its end.
func (l Limits) entries(stream io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		archive, last := tar.NewReader(stream), ""
		for {
			header, err := archive.Next()
			if err == io.EOF {
				// Bytes after the archive have no meaning, but gzip's checksum comes last.
				if _, err := io.Copy(io.Discard, stream); err != nil {
					yield(Entry{}, damaged(last, err))
				}
				return
			}
			if err != nil {
				yield(Entry{}, damaged(last, err))
				return
			}
			if header.Typeflag == tar.TypeXGlobalHeader {
				continue // `git archive` writes the commit's id into one
			}
			entry, err := l.entry(header, archive)
			if !yield(entry, err) || err != nil {
				return
			}
			last = header.Name
		}
	}
}

// entry reads the entry of a header.
func (l Limits) entry(h *tar.Header, content io.Reader) (Entry, error) {
	e := Entry{Path: h.Name}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		if h.Size > l.File {
			return e, &LimitError{Entry: h.Name, Most: fmt.Sprintf("files of at most %d bytes", l.File)}
		}
		e.Executable = h.Mode&0o111 != 0
		var err error
		if e.Data, err = io.ReadAll(io.LimitReader(content, l.File)); err != nil {
			return e, damaged(h.Name, err)
		}
	case tar.TypeDir:
		e.folder = true
	case tar.TypeSymlink:
		if e.Refused = h.PAXRecords[refusedRecord]; e.Refused != "" {
			return e, nil
		}
		if e.Link = h.Linkname; e.Link == "" {
			return e, &EntryError{Entry: h.Name, Problem: "is a link to nothing"}
		}
	case tar.TypeLink:
		if e.hard = h.Linkname; e.hard == "" {
			return e, &EntryError{Entry: h.Name, Problem: "is a link to nothing"}
		}
	case tar.TypeChar, tar.TypeBlock:
		return e, &EntryError{Entry: h.Name, Problem: "is a device"}
	case tar.TypeFifo:
		return e, &EntryError{Entry: h.Name, Problem: "is a pipe"}
	default:
		return e, &EntryError{Entry: h.Name, Problem: "is neither a file nor a folder nor a link"}
	}
	return e, nil
}

// damaged explains an error of reading.
func damaged(last string, err error) error {
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return err
	case errors.Is(err, tar.ErrHeader) && last == "":
		return &FormatError{Err: errNotArchive}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &FormatError{Entry: last, Err: fmt.Errorf("the archive breaks off: %w", err)}
	}
	return &FormatError{Entry: last, Err: fmt.Errorf("the archive is damaged: %w", err)}
}

// longestReason is the largest length of a reason for people, in runes.
const longestReason = 200

// reason returns a reason as one line without terminal control sequences.
func reason(text string) string {
	line := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
	if len(line) > longestReason {
		line = append(line[:longestReason-3], '.', '.', '.')
	}
	return string(line)
}
