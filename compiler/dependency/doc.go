// Package dependency keeps the dependencies of a platform, or an application: commits
// of git repositories, charts, OCI artifacts and CUE modules.
//
// A [Lock] is the file kalypso.lock in the root: which revision each source is pinned to,
// and the digest of its content. It is JSON that people review and merge: sorted, indented,
// with one field per line, and the same bytes for the same content. Reading it gives
// diagnostics with a line and a column for each thing that is wrong with it.
//
// A [Store] keeps content under its digest. It verifies content at each read, so a user who
// may write to a folder can remove content and cannot change it. A store reads two folders:
// the platform's vendor folder and the machine's. The vendor folder comes first, and a
// store never writes to it. Both have files sha256/HH/HEX, the digest in hexadecimal below
// its first two digits. All methods are safe for concurrent use, and any number of
// processes may use a folder at once. The folder locking in the machine's has the files of
// [Store.Alone].
//
// A [Library] is the lock and the store as a build reads them. It never uses the network.
// Its diagnostics for missing content have the command that fetches it.
//
// [Update] updates both to the used sources. Pins stay unless they are to be renewed. Only
// the [Fetcher], which package fetch implements, uses the network. A source that fails
// leaves the others, and its own pin, unchanged.
//
// The hello-world example renders nothing, so it has no lock. In examples/everywhere, two
// deployment targets use the same source:
//
//	Source{Kind: Chart, URL: "https://charts.example.com", Chart: "weather", Version: "2.1.0"}
//
// Update pins it by an [Entry] with the Revision "2.1.0". The Content of the entry is the digest of
// the chart's archive, and its Size is 670. [Library.Content] of this entry returns the archive,
// from vendor/sha256.
package dependency
