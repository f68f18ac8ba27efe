package engine

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// root is the user with all rights on a machine.
const root = "root"

// unit is a unit of a package.
type unit struct {
	name string
	model.Unit
	all map[string]model.Unit // of the package
}

// run is a user or a group that a unit runs as.
type run struct {
	as string
	by string // ": " and the directive that grants root; "" if the unit names the user or the group
}

// harmless are the directives of each section that do not extend the rights of the unit's user
// (systemd.directives(7)). They do not give the unit a place ahead of others or affect other
// units. All other directives count as root's unless confined checks them. systemd applies them
// before it becomes the user, or its documentation does not say.
var harmless = map[string]model.Patterns{
	"Unit": {"After", "Assert*", "CollectMode", "Condition*", "DefaultDependencies", "Description",
		"Documentation",
		"JobRunningTimeoutSec", "JobTimeoutSec", "PartOf", "RequiresMountsFor", "Requisite",
		"StartLimitBurst", "StartLimitIntervalSec"},
	"Service": {"Allowed*", "AmbientCapabilities", "CPU*", "!CPUSchedulingPolicy", "!CPUWeight",
		"CapabilityBoundingSet", "CoredumpFilter", "Device*", "DynamicUser", "Environment", "ExecPaths",
		"ExitType", "FileDescriptorStore*", "GuessMainPID", "IO*", "!IOSchedulingClass", "!IO*Weight",
		"IPA*", "InaccessiblePaths", "KeyringMode", "Kill*", "FinalKillSignal", "Limit*", "!LimitNICE",
		"!LimitRTPRIO", "LockPersonality",
		"LogLevelMax", "LogRateLimit*", "ManagedOOM*", "!ManagedOOMPreference", "Memory*", "!MemoryLow",
		"!MemoryMin", "NoExecPaths", "NoNewPrivileges", "NotifyAccess", "OOMPolicy",
		"Private*", "ProcSubset", "Protect*", "ReadOnlyPaths", "ReadWritePaths", "ReloadSignal",
		"RemainAfterExit", "RemoveIPC", "Restart*", "Restrict*",
		"*DirectoryMode", "RuntimeDirectoryPreserve", "RuntimeMaxSec", "SendSIG*", "Slice", "SocketBind*",
		"SuccessExitStatus", "Syslog*", "SystemCall*",
		"Tasks*", "TemporaryFileSystem", "Timeout*", "TimerSlackNSec", "Type", "UMask",
		"UnsetEnvironment", "WatchdogSec", "WatchdogSignal", "WorkingDirectory"},
	"Socket": {"Accept", "Backlog", "BindIPv6Only", "DeferAcceptSec", "DirectoryMode",
		"FileDescriptorName", "FlushPending", "KeepAlive*", "Max*", "NoDelay",
		"Priority", "ReceiveBuffer", "RemoveOnStop", "ReusePort", "SendBuffer", "SocketMode",
		"TimeoutSec", "TriggerLimit*"},
	"Timer": {"AccuracySec", "DeferReactivation", "FixedRandomDelay", "On*", "Persistent",
		"RandomizedDelaySec", "RemainAfterElapse"},
	"Path":    {"DirectoryNotEmpty", "PathChanged", "PathExists*", "PathModified", "TriggerLimit*"},
	"Install": {"DefaultInstance"},
}

// waited are the targets that any unit may require. They exist on every running machine.
var waited = []string{"basic.target", "local-fs.target", "network-online.target", "network.target",
	"nss-lookup.target", "nss-user-lookup.target",
	"paths.target", "remote-fs.target", "sockets.target", "sysinit.target", "time-set.target",
	"time-sync.target", "timers.target"}

// wanting are the targets that may start any unit. A target waits for the units that it wants,
// and nothing waits for these targets.
var wanting = []string{"default.target", "graphical.target", "multi-user.target"}

// runs returns the users and groups that the unit runs as, sorted and without duplicates. It
// leaves out the assignment's own user. That is the user of a confined service that names no
// other user.
func (u unit) runs() []run {
	var out []run
	for _, section := range []struct {
		name  string
		value *model.Value
	}{{"Unit", u.Unit.Unit}, {"Service", u.Service}, {"Socket", u.Socket}, {"Timer", u.Timer},
		{"Path", u.Path}, {"Install", u.Install}} {
		if section.value == nil {
			continue
		}
		for _, d := range section.value.Fields() {
			out = append(out, u.directive(section.name, d.Name, texts(d.Value))...)
		}
	}
	if _, named := lookupIn(u.Service, "User"); !named && !u.Harden &&
		strings.HasSuffix(u.name, ".service") {
		out = append(out, run{as: root})
	}
	slices.SortFunc(out,
		func(a, b run) int { return cmp.Or(strings.Compare(a.as, b.as), strings.Compare(a.by, b.by)) })
	return slices.Compact(out)
}

// directive returns the users and groups that a directive makes its unit run as.
func (u unit) directive(section, name string, values []string) (out []run) {
	switch name {
	case "User", "Group", "SupplementaryGroups", "SocketUser", "SocketGroup":
		for _, v := range values {
			for _, as := range strings.Fields(v) {
				out = append(out, run{as: as})
			}
		}
		return out
	}
	if u.confined(section, name, values) {
		return nil
	}
	return []run{{root, ": " + name}}
}

// confined reports whether systemd carries out a directive with only the rights of the unit's
// user.
func (u unit) confined(section, name string, values []string) bool {
	every := func(is func(string) bool) bool {
		return !slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(strings.Fields(v), func(word string) bool { return !is(word) })
		})
	}
	switch {
	case harmless[section].Allow(name) || strings.HasPrefix(name, "X-"): // systemd ignores the latter
		return true
	case name == "Before":
		// others would wait for it
		return every(func(v string) bool { return v == "shutdown.target" || u.isOwn(v) })
	case name == "WantedBy":
		return every(func(v string) bool {
			return slices.Contains(wanting, v) || u.isOwn(v) ||
				v == u.startedWith()
		})
	case name == "CPUSchedulingPolicy" || name == "IOSchedulingClass":
		return every(func(v string) bool {
			// not the real-time ones
			return slices.Contains([]string{"other", "batch", "idle", "best-effort"}, v)
		})
	case name == "Nice" || name == "OOMScoreAdjust":
		return every(func(v string) bool { n, err := strconv.Atoi(v); return err == nil && n >= 0 })
	case name == "CPUWeight" || name == "IOWeight":
		// 100 is the default
		return every(func(v string) bool {
			n,
				err := strconv.Atoi(v)
			return v == "idle" || err == nil && n <= 100
		})
	case name == "Wants" || name == "Requires" || name == "BindsTo" || name == "OnFailure" ||
		name == "OnSuccess" || name == "Unit" || name == "Sockets" || name == "Service":
		return every(u.mayStart)
	case section == "Service" && strings.HasPrefix(name, "Exec"):
		// Commands run as the user of the service, except commands with these marks
		// (systemd.service(5), "Command lines"). Commands of a socket run as root.
		return !slices.ContainsFunc(values, privileged)
	case name == "StandardInput" || name == "StandardOutput" || name == "StandardError":
		return every(func(v string) bool { return !strings.Contains(v, ":/") }) // systemd opens the file
	case name == "RuntimeDirectory" || name == "StateDirectory" || name == "CacheDirectory" ||
		name == "LogsDirectory" || name == "ConfigurationDirectory":
		return every(u.owns) // systemd gives an existing directory to the user
	case name == "ListenStream" || name == "ListenDatagram":
		return every(func(v string) bool { return !strings.ContainsAny(v, "/@") }) // a port, not a file
	}
	return false
}

// mayStart reports whether a unit may start another one. It may start a unit of its package, or a
// target that exists anyway.
func (u unit) mayStart(name string) bool { return u.isOwn(name) || slices.Contains(waited, name) }

// isOwn reports whether a unit belongs to the same package.
func (u unit) isOwn(name string) bool {
	_, own := u.all[name]
	return own
}

// startedWith returns systemd's target for units of its type. It returns "" if there is no such
// target.
func (u unit) startedWith() string {
	return map[string]string{".socket": "sockets.target", ".timer": "timers.target",
		".path": "paths.target"}[path.Ext(u.name)]
}

// owns reports whether a directory that systemd creates for services is the unit's own.
func (u unit) owns(dir string) bool {
	dir, link, linked := strings.Cut(dir, ":")
	own := strings.TrimSuffix(u.name, ".service")
	is := func(dir string) bool {
		return dir == own || strings.HasPrefix(dir, own+"/") && !strings.Contains(dir, "..")
	}
	return is(dir) && (!linked || is(link))
}

// privileged reports whether a command of a service runs with more rights than its user.
func privileged(command string) bool {
	marks := command[:len(command)-len(strings.TrimLeft(command, "@-:+!|"))]
	return strings.ContainsAny(marks, "+!")
}

// reserved reports whether a socket's address may have a port that only systemd, as root, can
// open for the user. Examples are "80", "192.0.2.1:80" and "vsock:2:80" (systemd.socket(5)). A
// port that is not a plain number, such as "%i" or "0120", may be any port.
func reserved(address string) bool {
	text := address[strings.LastIndexByte(address, ':')+1:]
	port, err := strconv.Atoi(text)
	return address != "" && (err != nil || port < 1024 || text != strconv.Itoa(port))
}

// capabilitiesOf returns the capabilities that a unit requires, sorted and without duplicates.
func capabilitiesOf(u model.Unit) []string {
	var out []string
	for _, listens := range []string{"ListenStream", "ListenDatagram"} {
		if v, given := lookupIn(u.Socket, listens); given && slices.ContainsFunc(texts(v), reserved) {
			out = append(out, "CAP_NET_BIND_SERVICE")
		}
	}
	// the bounding set does not grant any
	if v, given := lookupIn(u.Service, "AmbientCapabilities"); given {
		for _, text := range texts(v) {
			out = append(out, strings.Fields(text)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func lookupIn(section *model.Value, name string) (model.Value, bool) {
	if section == nil {
		return model.Value{}, false
	}
	return section.Lookup(name)
}

// texts returns the texts of a directive, which is a single text or a list.
func texts(v model.Value) []string {
	if v.Kind() != model.List {
		return []string{v.Text()}
	}
	var out []string
	for _, elem := range v.Elems() {
		out = append(out, elem.Text())
	}
	return out
}
