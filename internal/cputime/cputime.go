// Package cputime measures what this process costs: on a busy machine what only waits for a
// processor takes none of its time.
package cputime
