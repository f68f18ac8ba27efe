package cache

import (
	"fmt"
	"maps"
	"slices"
)

// Stats counts the results and bytes of one level since Open.
type Stats struct {
	Computed int // results that were stored, each key once
	// results that were found: reads of single results, and entries of tables, each once
	Reused       int
	ReadBytes    int64 // from the cache's files, and of remote tables
	WrittenBytes int64 // to the cache's files; rewriting a table counts too
}

// Stats returns the counts of every level that was used. The caller may change the map.
func (c *Cache) Stats() map[Level]Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[Level]Stats{}
	for l, s := range c.stats {
		out[l] = *s
	}
	return out
}

// levelStats returns the counts of a level; c.mu must be held.
func (c *Cache) levelStats(l Level) *Stats {
	s := c.stats[l]
	if s == nil {
		s = &Stats{}
		c.stats[l] = s
	}
	return s
}

// count adds to the counts of a level.
func (c *Cache) count(l Level, more Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.levelStats(l)
	s.Computed += more.Computed
	s.Reused += more.Reused
	s.ReadBytes += more.ReadBytes
	s.WrittenBytes += more.WrittenBytes
}

// wrote counts bytes in the cache's files.
func (c *Cache) wrote(l Level, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.levelStats(l).WrittenBytes += n
	c.written += n
}

// lie notes a difference in the mode Verify.
func (c *Cache) lie(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lies[what] = true
}

// Lies returns the differences in the mode Verify, sorted, for people: the level, the table's name
// for a result in a table, and the key. A lie means that a key does not cover all inputs of its
// result, or that someone forged an entry.
func (c *Cache) Lies() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.lies))
}

// tableLie describes a difference in a table.
func tableLie(l Level, name string, k Key) string { return fmt.Sprintf("%s %s %s", l, name, k) }
