package cache

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

const (
	// fewSegments is how many segments a table has after compaction, at most.
	fewSegments = 10
	// maxAge is how many processes in a row may compact an entry without using it.
	// More than one, because a process that builds one environment of many uses but
	// a part of a table. What appeared while a process ran does not age by it: it
	// never looked for that.
	maxAge = 3
)

// compactFrom returns the first of the segments that are to be merged into one,
// given their sizes, oldest first; or their number, if none are.
//
// A segment is merged with all newer ones if it is at most twice as large as they
// are together. So sizes grow at least threefold from newer to older, and an
// entry is rewritten a logarithmic number of times: a small segment beside a
// large one does not rewrite the large one.
func compactFrom(sizes []int64) int {
	from, newer := len(sizes), int64(0)
	for i := len(sizes) - 1; i >= 0; i-- {
		if i < len(sizes)-1 && sizes[i] <= 2*newer {
			from = i
		}
		newer += sizes[i]
	}
	if len(sizes) > fewSegments {
		from = min(from, fewSegments-1)
	}
	return from
}

// compact merges segments of a manifest where that is due. It returns the
// segments that are left, and those that were replaced. After an error all are
// left.
//
// In the mode Verify nothing is merged, because what was put by this process and
// what was there before must stay apart. What is not in the folder is not merged
// either.
func (t *Table) compact(all []segment) (left, replaced []segment, err error) {
	if t.c.mode == Verify {
		return all, nil, nil
	}
	first := 0
	var sizes []int64
	for i, s := range all {
		sizes = append(sizes, s.size())
		if !t.isHere(s) {
			first, sizes = i+1, nil
		}
	}
	from := first + compactFrom(sizes)
	if from == len(all) {
		return all, nil, nil
	}
	replaced = all[from:]
	var old []*section
	for _, s := range replaced {
		if section := t.section(s); section != nil {
			old = append(old, section)
		}
	}
	merged, err := t.merge(old)
	if err != nil {
		return all, nil, fmt.Errorf("compacting: %w", err)
	}
	t.segments = slices.DeleteFunc(t.segments, func(s *section) bool { return slices.Contains(old, s) })
	left = slices.Clone(all[:from])
	if merged != nil {
		t.segments = append(t.segments, merged)
		left = append(left, merged.segment)
		replaced = slices.DeleteFunc(slices.Clone(replaced), func(s segment) bool { return s.id == merged.id })
	}
	return left, replaced, nil
}

// section returns a segment in memory; nil if it cannot be read.
func (t *Table) section(s segment) *section {
	for _, known := range t.segments {
		if known.segment == s {
			return known
		}
	}
	return t.loadSegment(s)
}

// A survivor is an entry that a merged segment keeps.
type survivor struct {
	from  int // number of the old section
	entry int
	used  bool
	age   uint8
}

// merge makes one segment of several, oldest first; nil if nothing is left.
func (t *Table) merge(old []*section) (*section, error) {
	alive := survivors(old)
	if len(alive) == 0 {
		return nil, nil
	}
	w := t.newWriter()
	if err := t.rewrite(w, old, alive); err != nil {
		w.discard()
		return nil, err
	}
	s, x, err := w.finish()
	if err != nil {
		return nil, err
	}
	t.c.wrote(t.level, s.size())
	merged := t.newSection(s, x)
	for _, a := range alive {
		if !a.used {
			continue
		}
		// An entry whose block is damaged is not in the new segment.
		if i, ok := x.find(Key(old[a.from].index.keyBytes(a.entry))); ok {
			merged.use(i)
		}
	}
	return merged, nil
}

// survivors are the newest entries of all keys, without those that were not used
// for too long, in the order of the keys.
func survivors(old []*section) []survivor {
	var out []survivor
	next := make([]int, len(old))
	for {
		var least []byte
		newest := -1
		for n, s := range old {
			if next[n] == s.index.n {
				continue
			}
			k := s.index.keyBytes(next[n])
			if c := bytes.Compare(k, least); newest < 0 || c <= 0 {
				least, newest = k, n
			}
		}
		if newest < 0 {
			return out
		}
		a := survivor{from: newest, entry: next[newest]}
		for n, s := range old {
			if i := next[n]; i < s.index.n && bytes.Equal(s.index.keyBytes(i), least) {
				a.used = a.used || s.isUsed(i)
				next[n]++
			}
		}
		if s := old[a.from]; !a.used {
			a.age = s.index.ages[a.entry]
			if s.old {
				a.age = min(a.age, maxAge) + 1
			}
		}
		if a.age <= maxAge {
			out = append(out, a)
		}
	}
}

// rewrite adds the survivors to a writer. Blocks that are large and mostly alive
// are copied as they are; the bodies of others are compressed anew.
func (t *Table) rewrite(w *writer, old []*section, alive []survivor) error {
	blocks := blocksOf(old, alive)
	copied := map[blockKey]bool{}
	for _, b := range blocks {
		if b.raw < blockSize/2 || b.live < int64(b.raw)/2 {
			continue
		}
		s := old[b.from]
		data, err := b.compressed(t.c.store.path(s.data))
		if err != nil {
			continue // its entries are lost, and computed again
		}
		number := uint32(len(w.blocks))
		if err := w.addBlock(b.block, data); err != nil {
			return err
		}
		for _, a := range b.entries {
			r := s.index.row(a.entry)
			r.block = number
			w.append(Key(s.index.keyBytes(a.entry)), s.index.head(a.entry), r, a.age)
		}
		copied[blockKey{s.owner, b.number}] = true
	}
	for _, b := range blocks {
		s := old[b.from]
		if copied[blockKey{s.owner, b.number}] {
			continue
		}
		for _, a := range b.entries {
			body, ok := t.read(s, a.entry)
			if !ok {
				continue
			}
			k := Key(s.index.keyBytes(a.entry))
			if err := w.add(k, s.index.head(a.entry), body, s.index.row(a.entry).sum, a.age); err != nil {
				return err
			}
		}
	}
	return nil
}

// A liveBlock is a block with the entries in it that survive.
type liveBlock struct {
	block
	from    int
	number  uint32
	live    int64 // bytes of bodies
	entries []survivor
}

// blocksOf groups survivors by block, in the order of the segments, blocks and
// bodies. Entries without a body are a block of their own.
func blocksOf(old []*section, alive []survivor) []*liveBlock {
	row := func(a survivor) row { return old[a.from].index.row(a.entry) }
	alive = slices.Clone(alive)
	slices.SortStableFunc(alive, func(a, b survivor) int {
		x, y := row(a), row(b)
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(x.block, y.block), cmp.Compare(x.offset, y.offset))
	})
	var out []*liveBlock
	for _, a := range alive {
		r := row(a)
		last := len(out) - 1
		if last < 0 || out[last].from != a.from || out[last].number != r.block {
			b := &liveBlock{from: a.from, number: r.block}
			if r.block != noBlock {
				b.block = old[a.from].index.blocks[r.block]
			}
			out = append(out, b)
			last++
		}
		out[last].entries = append(out[last].entries, a)
		out[last].live += int64(r.length)
	}
	return out
}
