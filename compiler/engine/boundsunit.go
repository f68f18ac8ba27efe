package engine

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// root is who may do everything on a machine.
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
	by string // ": " and the directive, where it says so in other words
}

// harmless are the directives of each section that give a unit nothing that its user does not
// have, no place ahead of others, and that touch no other unit (systemd.directives(7)). Whatever is not among them, and
// is not looked at by itself, counts as root's: systemd does it before it becomes the user,
// or does not say.
var harmless = map[string]model.Patterns{
	"Unit": {"After", "Assert*", "CollectMode", "Condition*", "DefaultDependencies", "Description", "Documentation",
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
		"Priority", "ReceiveBuffer", "RemoveOnStop", "ReusePort", "SendBuffer", "SocketMode", "TimeoutSec", "TriggerLimit*"},
	"Timer": {"AccuracySec", "DeferReactivation", "FixedRandomDelay", "On*", "Persistent",
		"RandomizedDelaySec", "RemainAfterElapse"},
	"Path":    {"DirectoryNotEmpty", "PathChanged", "PathExists*", "PathModified", "TriggerLimit*"},
	"Install": {"DefaultInstance"},
}

// waited are the targets that any unit may ask for: they are there on a machine that runs.
var waited = []string{"basic.target", "local-fs.target", "network-online.target", "network.target",
	"nss-lookup.target", "nss-user-lookup.target",
	"paths.target", "remote-fs.target", "sockets.target", "sysinit.target", "time-set.target",
	"time-sync.target", "timers.target"}

// wanting are the targets that any unit may be started with. A target waits for what it wants,
// and nothing waits for these.
var wanting = []string{"default.target", "graphical.target", "multi-user.target"}

// runs returns what the unit runs as beside the assignment's own user, which a service has
// that is confined and names no other: sorted, each once.
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
	if _, named := lookupIn(u.Service, "User"); !named && !u.Harden && strings.HasSuffix(u.name, ".service") {
		out = append(out, run{as: root})
	}
	slices.SortFunc(out, func(a, b run) int { return cmp.Or(strings.Compare(a.as, b.as), strings.Compare(a.by, b.by)) })
	return slices.Compact(out)
}

// directive returns what a directive has its unit run as.
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

// confined says whether what a directive asks for is done with the rights of the unit's user.
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
		return every(func(v string) bool { return v == "shutdown.target" || u.isOwn(v) }) // others would wait for it
	case name == "WantedBy":
		return every(func(v string) bool { return slices.Contains(wanting, v) || u.isOwn(v) || v == u.startedWith() })
	case name == "CPUSchedulingPolicy" || name == "IOSchedulingClass":
		return every(func(v string) bool {
			return slices.Contains([]string{"other", "batch", "idle", "best-effort"}, v) // and not real time
		})
	case name == "Nice" || name == "OOMScoreAdjust":
		return every(func(v string) bool { n, err := strconv.Atoi(v); return err == nil && n >= 0 })
	case name == "CPUWeight" || name == "IOWeight":
		// 100 is the default
		return every(func(v string) bool { n, err := strconv.Atoi(v); return v == "idle" || err == nil && n <= 100 })
	case name == "Wants" || name == "Requires" || name == "BindsTo" || name == "OnFailure" ||
		name == "OnSuccess" || name == "Unit" || name == "Sockets" || name == "Service":
		return every(u.mayStart)
	case section == "Service" && strings.HasPrefix(name, "Exec"):
		// Commands run as the user of the service, but for those with these marks
		// (systemd.service(5), "Command lines"); those of a socket run as root.
		return !slices.ContainsFunc(values, privileged)
	case name == "StandardInput" || name == "StandardOutput" || name == "StandardError":
		return every(func(v string) bool { return !strings.Contains(v, ":/") }) // systemd opens the file
	case name == "RuntimeDirectory" || name == "StateDirectory" || name == "CacheDirectory" ||
		name == "LogsDirectory" || name == "ConfigurationDirectory":
		return every(u.owns) // systemd gives one that is there to the user
	case name == "ListenStream" || name == "ListenDatagram":
		return every(func(v string) bool { return !strings.ContainsAny(v, "/@") }) // a port, and no file
	}
	return false
}

// mayStart says whether a unit may have another one started: one of its package, or a target
// that is there anyway.
func (u unit) mayStart(name string) bool {
	return u.isOwn(name) || slices.Contains(waited, name)
}

// isOwn says whether a unit is one of its package.
func (u unit) isOwn(name string) bool {
	_, own := u.all[name]
	return own
}

// startedWith returns the target that systemd has for units of its type; "" for none.
func (u unit) startedWith() string {
	return map[string]string{".socket": "sockets.target", ".timer": "timers.target",
		".path": "paths.target"}[path.Ext(u.name)]
}

// owns says whether a directory of systemd's for services is the unit's own.
func (u unit) owns(dir string) bool {
	dir, link, linked := strings.Cut(dir, ":")
	own := strings.TrimSuffix(u.name, ".service")
	is := func(dir string) bool {
		return dir == own || strings.HasPrefix(dir, own+"/") && !strings.Contains(dir, "..")
	}
	return is(dir) && (!linked || is(link))
}

// privileged says whether a command of a service runs with more rights than its user has.
func privileged(command string) bool {
	marks := command[:len(command)-len(strings.TrimLeft(command, "@-:+!|"))]
	return strings.ContainsAny(marks, "+!")
}

// reserved says whether a socket's address may have a port that a user cannot listen on, which
// systemd opens for it: "80", "192.0.2.1:80" or "vsock:2:80" (systemd.socket(5)). A port that
// is no plain number, such as "%i" or "0120", may be any.
func reserved(address string) bool {
	text := address[strings.LastIndexByte(address, ':')+1:]
	port, err := strconv.Atoi(text)
	return address != "" && (err != nil || port < 1024 || text != strconv.Itoa(port))
}

// capabilitiesOf returns the capabilities that a unit asks for, sorted, each once.
func capabilitiesOf(u model.Unit) []string {
	var out []string
	for _, listens := range []string{"ListenStream", "ListenDatagram"} {
		if v, given := lookupIn(u.Socket, listens); given && slices.ContainsFunc(texts(v), reserved) {
			out = append(out, "CAP_NET_BIND_SERVICE")
		}
	}
	if v, given := lookupIn(u.Service, "AmbientCapabilities"); given { // the bounding set gives none
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

// texts returns the texts of a directive, which is one or a list of them.
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
