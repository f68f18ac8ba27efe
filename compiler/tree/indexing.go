package tree

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// tick is more than the time for which the clock of a file system stands still:
// a file that is changed twice within it may look the same. coarseTick is that
// of file systems whose times are whole seconds.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// indexing writes the index of a folder that is as planned.
type indexing struct {
	disk
	*writePlan
	staged time.Time // when all files were written; zero where none were

	// By the clock of the file system, which need not be this machine's:
	oldest time.Time // of the first look at a file, less a tick
	latest time.Time // of now, less a tick
	last   time.Time // of staged
}

// write writes the index. It is not synced: one that is damaged says nothing.
func (x *indexing) write() error {
	return x.in(ownFolder, func(in *os.Root) error {
		temp := tempPath(indexPath)
		f, err := x.create(in, temp, permissions(false))
		if err != nil {
			return err
		}
		defer f.Close() // a second time, unless there is an error
		if err := x.setClock(f); err != nil {
			return err
		}
		if err := x.step("write", temp); err != nil {
			return err
		}
		if err := x.writeTo(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		return x.swap(in, indexPath)
	})
}

// setClock tells the time from a file that was just made.
func (x *indexing) setClock(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now, still := info.ModTime(), tick
	if now.Nanosecond() == 0 {
		still = coarseTick
	}
	x.latest = now.Add(-still)
	x.oldest = x.latest.Add(-time.Since(x.began))
	x.last = now.Add(-time.Since(x.staged))
	return nil
}

func (x *indexing) writeTo(f io.Writer) error {
	if err := x.lookAgain(); err != nil {
		return err
	}
	own, err := x.ownSection()
	if err != nil {
		return err
	}
	record, err := x.root.Lstat(recordPath)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	buf := bufio.NewWriterSize(f, 1<<20)
	out := io.MultiWriter(buf, sum)
	if _, err := out.Write(appendIndexHeader(nil, BlobID(x.nextBytes), statOf(record))); err != nil {
		return err
	}
	section := func(name string, s *section) error {
		b := appendBytes(make([]byte, 0, len(name)+8), name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.data)))
		if _, err := out.Write(b); err != nil {
			return err
		}
		_, err := out.Write(s.data)
		return err
	}
	if err := section(ownFolder, own); err != nil {
		return err
	}
	for _, p := range x.parts {
		if p.section == nil {
			continue
		}
		if err := section(p.name, p.section); err != nil {
			return err
		}
	}
	if _, err := buf.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	return buf.Flush()
}

// lookAgain decides what the entries are worth that are new.
func (x *indexing) lookAgain() error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range x.parts {
		if p.section != nil && p.revised {
			g.Go(func() error { return x.revise(p) })
		}
	}
	return g.Wait()
}

func (x *indexing) revise(p *typePlan) error {
	s, err := openScanner(x.root)
	if err != nil {
		return err
	}
	inside, last, there := false, "", false
	p.section.each(func(dir, file string, e entry) {
		switch e.trust() {
		case compared:
			e.setTrust(worth(e.stat().before(x.oldest)))
		case fresh:
			if !inside || dir != last {
				inside, last = true, dir
				there = s.enter(path.Join(p.name, dir))
			}
			is, whole := stat{}, false
			if there {
				is, whole = s.stat(file, e.executable())
			}
			// What is written to after it was staged is someone else's doing.
			untouched := whole && is.size == e.stat().size && is.mtime <= x.last.UnixNano()
			e.setStat(is)
			e.setTrust(worth(untouched && is.before(x.latest)))
		}
	})
	return s.close()
}

func worth(certain bool) trust {
	if certain {
		return trusted
	}
	return doubtful
}

// ownSection is about the records of the cluster types. What they say is checked
// by id whenever they are read, so that a look will do.
func (x *indexing) ownSection() (*section, error) {
	s, err := openScanner(x.root)
	if err != nil {
		return nil, err
	}
	own := &section{}
	if s.enter(recordsFolder) {
		for _, e := range x.next.ClusterTypes {
			p := ClusterTypeRecordPath(e.Name)
			is, there := s.stat(path.Base(p), false)
			own.add(p[len(ownFolder)+1:], Blob{ID: e.Record}, is, worth(there && is.before(x.latest)))
		}
	}
	return own, s.close()
}
