// Package dependency is what a platform, or an application, takes from elsewhere: commits of
// git repositories, charts, OCI artifacts and CUE modules.
//
// A [Lock] is the file kalypso.lock in the root: which revision each source is pinned to,
// and the digest of its content. It is JSON that people review and merge: sorted, indented,
// with one field per line, and the same bytes for the same content. Reading it gives
// diagnostics with a line and a column for each thing that is wrong with it.
//
// A [Store] keeps content under its digest. Everything is verified whenever it is read, so
// who may write to a folder can take content away and cannot change it. It reads two
// folders: the platform's vendor folder, which comes first and which it never writes, and
// the machine's. Both hold sha256/HH/HEX, the digest in hexadecimal below its first two
// digits. All its methods are safe for concurrent use, and any number of processes may use a
// folder at once. The folder locking in the machine's has what [Store.Alone] locks.
//
// A [Library] is both as a build reads them. It never reaches a network; what it does not
// have, it says how to get.
//
// [Update] brings both up to what is used. What is pinned stays pinned unless it is to be
// renewed. Only the [Fetcher] reaches a network. A source that fails leaves the others, and
// its own pin, as they are.
package dependency
