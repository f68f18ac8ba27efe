package cache

import (
	"errors"
	"slices"
)

// Flush makes what was put visible to other processes, as a new segment. Any
// number of processes may flush a table at once; the segments of all are kept.
// Its error is remembered by the Cache as well; the entries are then lost.
func (t *Table) Flush() error {
	if !t.c.open() {
		return nil
	}
	t.mu.RLock()
	clean := t.pending == nil && len(t.adopted) == 0
	t.mu.RUnlock()
	if clean {
		return nil
	}
	t.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.flush(); err != nil {
		return t.fail(err)
	}
	return nil
}

func (t *Table) flush() error {
	var fresh []*section
	if t.pending != nil {
		w := t.pending
		t.pending, t.at = nil, map[Key]int{}
		s, x, err := w.finish()
		if err != nil {
			return err
		}
		t.c.wrote(t.level, s.size())
		fresh = append(fresh, t.newSection(s, x))
		fresh[0].useAll()
	}
	unlock, err := t.c.store.lock(t.id)
	if err != nil {
		t.segments = append(t.segments, fresh...) // still good for this process
		return err
	}
	defer unlock()
	return t.publish(fresh)
}

// publish writes the manifest anew: what came from the remote cache, what the
// manifest lists now, and what is fresh, compacted. The table must be locked
// against other processes.
func (t *Table) publish(fresh []*section) error {
	listed, before := t.manifest()
	all := mergeManifests(t.adopted, listed, nil)
	// A segment that cannot be read is not listed again.
	all = slices.DeleteFunc(all, func(s segment) bool {
		return !t.c.store.has(s.id, s.indexSize) || !t.isHere(s) && !t.c.remote.usable()
	})
	for _, s := range fresh {
		all = mergeManifests(all, []segment{s.segment}, nil)
	}
	t.adopted = nil
	t.segments = append(t.segments, fresh...)
	all, replaced, compactErr := t.compact(all)
	now, err := t.c.store.put(t.id, t.header().seal(encodeManifest(all)))
	if err != nil {
		return errors.Join(compactErr, err)
	}
	if now != before {
		t.c.store.retire(before)
	}
	for _, s := range replaced {
		t.c.store.retire(s.id)
		if s.dataSize > 0 {
			t.c.store.retire(s.data)
		}
	}
	t.upload(replaced)
	return compactErr
}

// upload brings what the remote cache does not have yet to it, in the background:
// files first, then the manifest that names them.
func (t *Table) upload(replaced []segment) {
	if !t.c.remote.writable() {
		return
	}
	t.c.remote.later(func() {
		t.uploading.Lock()
		defer t.uploading.Unlock()
		for _, s := range replaced {
			if t.replaced == nil {
				t.replaced = map[digest]bool{}
			}
			t.replaced[s.id] = true
		}
		there, err := t.remoteManifest()
		if !mayReplace(err) {
			return
		}
		here, _ := t.manifest()
		here = slices.DeleteFunc(here, func(s segment) bool {
			return !slices.Contains(there, s) && !t.uploadSegment(s)
		})
		t.uploadManifest(here)
	})
}

// manifestTries is how often the remote manifest is written at most.
const manifestTries = 5

// uploadManifest adds segments to the remote manifest. Machines that end together
// write it at once, no lock is between them, and the last one holds. So it is read
// just before it is written, not before the files are sent, and read again
// afterwards: what another machine left out is added again.
func (t *Table) uploadManifest(here []segment) {
	for range manifestTries {
		there, err := t.remoteManifest()
		if !mayReplace(err) || err == nil && t.lists(there, here) {
			return
		}
		all := mergeManifests(there, here, t.replaced)
		if !t.c.remote.put(tableName(t.id), t.header().seal(encodeManifest(all))) {
			return
		}
	}
}

// lists says whether a remote manifest has all segments, and none that was replaced.
func (t *Table) lists(there, here []segment) bool {
	for _, s := range there {
		if t.replaced[s.id] {
			return false
		}
	}
	for _, s := range here {
		if !t.replaced[s.id] && !slices.Contains(there, s) {
			return false
		}
	}
	return true
}

// mayReplace says whether a remote manifest may be written, after it was read with
// that error: where it could not be read, writing could lose what others wrote.
func mayReplace(err error) bool {
	return err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, errForeign)
}

func (t *Table) uploadSegment(s segment) bool {
	if s.dataSize > 0 && !t.uploadBlob(s.data, s.dataSize) {
		return false
	}
	return t.uploadBlob(s.id, s.indexSize)
}

func (t *Table) uploadBlob(id digest, size int64) bool {
	data, ok := t.c.store.blob(id, size)
	return ok && t.c.remote.put(blobName(id), data)
}
