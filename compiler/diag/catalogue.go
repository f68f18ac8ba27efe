package diag

// The codes. Their explanations are in Codes.
const (
	Syntax                Code = "K1001" // a file is not valid CUE
	Compile               Code = "K1002" // the package does not compile
	Import                Code = "K1003" // an import does not exist
	LanguageVersion       Code = "K1004" // the module needs a newer language
	Module                Code = "K1005" // the folder is not a CUE module of a platform
	UnknownCollection     Code = "K1101" // unknown top-level field
	UnknownField          Code = "K1102" // unknown field
	WrongValue            Code = "K1103" // a value does not fit
	NotAllowed            Code = "K1104" // a value is not one of the allowed values
	Missing               Code = "K1105" // a required field is missing
	BadName               Code = "K1106" // a name is not a DNS label
	OneOf                 Code = "K1107" // exactly one of several fields must be given
	Conflict              Code = "K1108" // two values of one field conflict
	Incomplete            Code = "K1109" // the entities are not all known
	NotConcrete           Code = "K1110" // a value is not concrete
	Bytes                 Code = "K1111" // bytes cannot be a value
	OpenReference         Code = "K1113" // a value refers to a value that is not final
	Crash                 Code = "K1114" // CUE fails by a mistake of its own
	Unverifiable          Code = "K1115" // a source must be verified, and cannot be
	Costly                Code = "K1116" // CUE takes too long or too much memory
	LargeStruct           Code = "K1117" // a struct is too large for CUE
	StrayFile             Code = "K1201" // a file of package platform is never loaded
	OtherPackage          Code = "K1202" // a file in a platform folder has another package
	UndeclaredEnvironment Code = "K1203" // an environment folder has no entry
	EnvironmentCycle      Code = "K1204" // environments wait for each other
	SharedPlace           Code = "K1205" // two environments keep their trees in one place
	NoUpstream            Code = "K1206" // a policy needs an earlier environment
	Rings                 Code = "K1207" // rings of an environment do not fit together
	RingMembership        Code = "K1208" // a cluster type is in no ring, or in several
	BadWindow             Code = "K1209" // a window cannot be used
	StopsNothing          Code = "K1210" // a gate can stop nothing
	NeverMoves            Code = "K1211" // no commit can ever reach an environment
	// a tree would be kept in the branch from which it is promoted
	OwnBranch            Code = "K1212"
	UnknownReference     Code = "K1301" // a reference to something that does not exist
	DuplicateTarget      Code = "K1302" // two deployment targets have one full name
	ImpliedLabel         Code = "K1303" // a label is named like an implied key
	DataSchema           Code = "K1304" // an embedded JSON Schema was read as data
	Registration         Code = "K1305" // a registration adds something forbidden, or nothing
	ClusterValues        Code = "K1306" // values of single clusters cannot be delivered
	URLCredentials       Code = "K1307" // a URL has credentials
	ConfigSchema         Code = "K1308" // a config schema of a registered Workload cannot be used
	Misplaced            Code = "K1309" // a tree would be written where its own objects do not point
	LostCluster          Code = "K1310" // errors hide a cluster that is recorded
	BadInventory         Code = "K1311" // an inventory cannot be read
	BadRow               Code = "K1312" // a row of an inventory cannot be used
	DuplicateCluster     Code = "K1313" // a cluster is there twice
	ClusterWithoutType   Code = "K1314" // a cluster has no cluster type, or several
	SplitClusterType     Code = "K1315" // the clusters of a cluster type have several classes
	NoEntries            Code = "K1316" // clusters cannot have entries of their own
	BadSelector          Code = "K1401" // a selector cannot be used
	BadContract          Code = "K1402" // a contract is malformed
	ExceptNothing        Code = "K1403" // except selects nothing or everything
	BadPath              Code = "K1404" // a path cannot be read
	SelectsNoMore        Code = "K1405" // a selector no longer selects anything
	NoContent            Code = "K1901" // an environment without content
	SelectsNothing       Code = "K1902" // a selector selects nothing
	Unassigned           Code = "K1903" // a deployment target without any assignment
	EmptyClusterType     Code = "K1904" // a cluster type without assignments
	LikelyMisspelt       Code = "K1905" // a label or a key is one edit away from another one
	ManyEntities         Code = "K1906" // a collection is too large for CUE
	PassedOver           Code = "K1907" // a file is passed over
	OwnPolicy            Code = "K1908" // a policy of promotion in an environment's own files
	SeveralFiles         Code = "K1909" // several files have parts of one selector
	UnpinnedSchema       Code = "K1910" // the module does not pin the schema
	NotCUE               Code = "K1911" // a YAML file beside the platform's files
	NoTargets            Code = "K1912" // a workload without deployment targets
	Unportable           Code = "K1913" // a name that not every file system can hold
	LeftCluster          Code = "K1914" // the entry of a cluster that is no longer listed stays
	NoEnvironments       Code = "K1915" // there are no environments
	NoClusters           Code = "K1916" // a config is for single clusters, and no clusters are listed
	WaitingClusters      Code = "K1917" // entries of clusters stay unchanged because of errors
	OtherClusterType     Code = "K1918" // a cluster moves to another cluster type
	NumberOfPairs        Code = "K1919" // a bound is a number, and counts each cluster
	TreeMoved            Code = "K1920" // an environment's tree is kept elsewhere than before
	OwnChangesSoak       Code = "K1921" // changes of own files soak in rings
	PinConflict          Code = "K2101" // two policies pin one assignment differently
	PinMismatch          Code = "K2102" // a pin does not fit the manifests
	DependsOn            Code = "K2103" // a dependency cannot be met
	NamespaceCollision   Code = "K2104" // two assignments of one cluster type share a namespace
	BadNamespace         Code = "K2105" // a namespace's name is not a DNS label
	ConflictingValues    Code = "K2003" // conflicting values
	ConflictingDefaults  Code = "K2004" // conflicting defaults
	FinalValue           Code = "K2005" // a final value is contradicted
	NoValue              Code = "K2006" // a value is not concrete
	ConflictingOverrides Code = "K2007" // conflicting overrides
	BrokenConfig         Code = "K2008" // a config that the assignment needs has errors
	Unsatisfied          Code = "K2009" // the values break a contract
	ConflictingContracts Code = "K2010" // contracts give a key different defaults
	ListStrategies       Code = "K2011" // config schemas give a path different strategies
	ListStrategy         Code = "K2012" // a list strategy does not fit the values
	Function             Code = "K2013" // a function of #assignment fails
	NumberRange          Code = "K2014" // a number is too large or too small
	TestFailed           Code = "K2015" // a test fails
	Override             Code = "K2901" // an override is in use
	Plaintext            Code = "K2902" // a value looks like a secret in plain text
	Advice               Code = "K2903" // the values break a contract that only advises
	Unfilled             Code = "K2904" // a value has a variable that nothing fills in
	UnsupportedManifests Code = "K3001" // the reconciler cannot deliver these manifests
	UndeliverableSecret  Code = "K3002" // a secret cannot be delivered
	NeedsGitOps          Code = "K3003" // the environment's gitops is not given
	NameCollision        Code = "K3004" // an object is created twice
	// a manifest of the namespace service is not a Kubernetes object
	NotAnObject  Code = "K3005"
	HelmValues   Code = "K3006" // application and platform values collide
	BadConfigKey Code = "K3007" // a key cannot be part of the platform config
	// the reconciler's or namespace service's fields do not fit together
	BadSpec           Code = "K3008"
	TooLarge          Code = "K3009" // an object is too large for Kubernetes
	ReconcilerChange  Code = "K3010" // a reconciler changes while a folder is kept
	NotLocked         Code = "K3011" // a source is not in kalypso.lock
	MissingContent    Code = "K3012" // the store lacks content that kalypso.lock names
	DamagedContent    Code = "K3013" // the store has something other than kalypso.lock names
	BadSource         Code = "K3014" // the content of a source cannot be read, or is not to be trusted
	Render            Code = "K3015" // a chart or an overlay cannot be rendered
	Unstable          Code = "K3016" // two renders of one chart differ
	Unbounded         Code = "K3017" // a source takes too long, or its output is too large
	KubernetesVersion Code = "K3018" // a chart needs the version of Kubernetes, which is unknown
	NotRendered       Code = "K3019" // something rendered is not a Kubernetes object
	Template          Code = "K3020" // a template fails, or its output is not allowed
	BadFile           Code = "K3021" // a file cannot be written
	BadLock           Code = "K3022" // kalypso.lock cannot be read
	NoBootstrap       Code = "K3023" // nothing lets a cluster pull its folder
	NoSecret          Code = "K3025" // a source gets no secret, and may need one
	ForeignSecret     Code = "K3026" // a registration names a secret that its host does not get
	Bounds            Code = "K3027" // an assignment goes beyond its workspace
	NoPolicies        Code = "K3028" // the account with which a reconciler applies objects is unknown
	Encrypted         Code = "K3029" // something encrypted is not decrypted by anything
	RemovesNamespace  Code = "K3901" // a namespace is removed or renamed
	NotWaitedFor      Code = "K3902" // a dependency is applied, and not waited for
	NoEffect          Code = "K3903" // a field has no effect here
	IndexGoes         Code = "K3904" // assignments.yaml is removed
	EnvironmentGone   Code = "K3905" // the output of a removed environment stays
	// a hook of a chart is applied as an ordinary object, or not at all
	Hook            Code = "K3906"
	Unpinned        Code = "K3907" // something is not pinned where it should be
	NoRestart       Code = "K3909" // restartOnConfigChange has no effect
	RetainsObjects  Code = "K3911" // objects stay on the clusters when their assignment is removed
	EncryptedObject Code = "K3912" // an encrypted object is written as it is
	ForeignFile     Code = "K4001" // a file that kalypso did not write blocks the output
	ForeignRecord   Code = "K4002" // the folder belongs to another platform
	KeptMissing     Code = "K4004" // a kept folder does not exist
	TooManyRemovals Code = "K4005" // a build would remove too many assignments or clusters
	BadRecord       Code = "K4003" // the folder's record cannot be read
)

// Codes are all codes with their explanations, sorted.
var Codes = []Explanation{
	{Syntax, Syntax.Severity(), "a file is not valid CUE",
		"The file cannot be parsed, so nothing of its package is known. The environment keeps its last " +
			"good output (a base file: all environments); the others are built. `cue fmt` points to the " +
			"same place."},
	{Compile, Compile.Severity(), "the package does not compile",
		"A reference to something that is not there, an unused import or an unused let makes the whole " +
			"package unreadable for CUE, not only the entity that it stands in. So does a pipe, a socket, " +
			"a device or a link that leads nowhere in the place of a file. The environment keeps its last " +
			"good output; the others are built."},
	{Import, Import.Severity(), "an import is not there",
		"The imported package is neither in the platform's module nor in the module cache or " +
			"cue.mod/pkg. A build never reaches the network: `cue mod tidy` adds the module to " +
			"cue.mod/module.cue, and `kalypso lock` fetches what is there."},
	{LanguageVersion, LanguageVersion.Severity(), "the module needs a newer language",
		"The language version in cue.mod/module.cue, of the platform or of a module that it imports, " +
			"is newer than the CUE that this kalypso was built with. Take a newer kalypso, or lower the " +
			"version if the module does not need it."},
	{Module, Module.Severity(), "the folder is not a CUE module of a platform",
		"A platform is a CUE module: a folder with cue.mod/module.cue, and files of package platform " +
			"at its root."},
	{UnknownCollection, UnknownCollection.Severity(), "unknown top-level field",
		"The regular fields of package platform are the collections of the schema. Use a hidden field " +
			"(_name), a definition (#Name) or a let for anything else."},
	{UnknownField, UnknownField.Severity(), "unknown field",
		"The schema has no such field here. Fields are checked so that a misspelt one cannot be " +
			"silently without effect."},
	{WrongValue, WrongValue.Severity(), "a value does not fit",
		"The value has the wrong type, or breaks the constraint that the schema gives for the field."},
	{NotAllowed, NotAllowed.Severity(), "a value is not one of those allowed",
		"The schema lists the values that the field can have."},
	{Missing, Missing.Severity(), "a required field is missing",
		"The entity cannot be used without the field."},
	{BadName, BadName.Severity(), "a name is not a DNS label",
		"Names of entities become names of folders, namespaces and objects: at most 63 lower case " +
			"letters, digits and dashes, beginning and ending with a letter or digit."},
	{OneOf, OneOf.Severity(), "exactly one of several fields must be given",
		"The fields are alternatives: none of them, or two, leave open what is meant."},
	{Conflict, Conflict.Severity(), "two values of one field conflict",
		"Two places of the platform give the field different values. CUE unifies all files of a " +
			"package: no place wins."},
	{Incomplete, Incomplete.Severity(), "which entities there are is not known",
		"A comprehension or a dynamic field name depends on a value that is not concrete, so CUE " +
			"leaves its entities out without an error. kalypso treats it as one, so that nothing is " +
			"removed that you did not mean to remove."},
	{NotConcrete, NotConcrete.Severity(), "a value is not concrete",
		"The field needs a value, and has only a constraint."},
	{Bytes, Bytes.Severity(), "bytes cannot be a value",
		"A value of type bytes has no text of its own in a platform config. Write a string, for " +
			"instance with base64.Encode."},
	{OpenReference, OpenReference.Severity(), "a value refers to one that is not final",
		"Configs compose value by value. A value that is built from another value of its config would " +
			"keep what the config itself says, though a higher layer or another config may give that " +
			"other value in the end."},
	{Crash, Crash.Severity(), "CUE fails by a mistake of its own",
		"CUE's evaluator, exporter or parser came to a state that it does not expect. What it was " +
			"asked about fails like anything with an error: the assignments that need it keep their last " +
			"good output, and the others are built. Comprehensions inside comprehensions, and references " +
			"through names that are no identifiers, are where it happens most: write them in another way."},
	{Unverifiable, Unverifiable.Severity(), "a source is to be verified, and cannot be",
		"A signature is that of one tag, or of one artifact: a branch, a range of versions and a " +
			"commit have none that a reconciler checks. Who reads verify believes that something is, so " +
			"it is an error wherever it is written, also where no policy assigns it."},
	{Costly, Costly.Severity(), "CUE takes too long or too much memory",
		"CUE is a language with which a few lines can ask for a year of work, or a terabyte: a " +
			"comprehension over every pair of a long list, strings that double, recursion without end. So " +
			"the evaluation of an environment has bounds of processor time and of memory, far beyond what " +
			"platforms need. An environment that goes beyond them keeps its last good output, and the " +
			"others are built: kalypso begins again without it. Where it is not known what takes so much, " +
			"each file that only declares entities is first evaluated alone, within half of the time; the " +
			"message names the entity or the file that takes the most of it, or else the files that were " +
			"evaluated. `evaluation` of the environment in the base, or the flags --evaluation-cpu and " +
			"--evaluation-memory, set other bounds."},
	{LargeStruct, LargeStruct.Severity(), "a struct is too large for CUE",
		"CUE looks for each field of a struct among all others, so that a struct takes the square of " +
			"its fields: nearly ten seconds with 50,000, and four times that with twice as many. One that " +
			"is written with more is refused before it is evaluated, and its environment keeps its last " +
			"good output. Collections may be larger: K1906 warns of them."},
	{StrayFile, StrayFile.Severity(), "a file of package platform is never loaded",
		"CUE loads the platform's root and the folders directly below environments/. A file of package " +
			"platform anywhere else has no effect."},
	{OtherPackage, OtherPackage.Severity(), "a file in a platform folder has another package",
		"The file is not part of package platform, so it has no effect. Move helper packages into a " +
			"folder of their own."},
	{UndeclaredEnvironment, UndeclaredEnvironment.Severity(), "an environment folder has no entry",
		"environments/<name>/ is built only if environments declares <name>."},
	{EnvironmentCycle, EnvironmentCycle.Severity(), "environments wait for each other",
		"The environments form a graph by after, in which a commit must be able to go from the first " +
			"to the last."},
	{SharedPlace, SharedPlace.Severity(), "two environments keep their trees in one place",
		"A folder of a branch, and a tag of an OCI repository, holds the tree of one environment: each " +
			"would replace the other's, or a part of it where one folder is within the other. Their " +
			"output stays as it is."},
	{NoUpstream, NoUpstream.Severity(), "a policy needs an environment that comes before",
		"The field speaks of environments or rings that a commit has been in before it comes here: " +
			"those in after, and those before them. Here is none, or the one that is named is not among " +
			"them, so that no commit could ever pass."},
	{Rings, Rings.Severity(), "rings of an environment do not fit together",
		"Each ring has a name of its own, the rings form a graph by after, in which a commit must be " +
			"able to go from the first to the last, and one ring at most has the cluster types that are " +
			"in no other."},
	{RingMembership, RingMembership.Severity(), "a cluster type is in no ring, or in several",
		"A commit comes to the rings of an environment one after the other, and to each cluster type " +
			"with one of them. The environment is built all the same; no commit is promoted to it."},
	{BadWindow, BadWindow.Severity(), "a window cannot be used",
		"A window has a beginning and a later end, both times of the week or both dates with a time, " +
			"and a time zone by its IANA name. All windows of an environment, and of one of its rings, " +
			"together leave a time in which a commit may come."},
	{StopsNothing, StopsNothing.Severity(), "a gate can stop nothing",
		"The gate has no bound, or asks for no time, so that every commit passes it. Who reads the " +
			"policy would rely on it."},
	{NeverMoves, NeverMoves.Severity(), "no commit can ever come to an environment",
		"What the policy asks for cannot be had: more approvals than there are people who may give " +
			"them."},
	{OwnBranch, OwnBranch.Severity(), "a tree would be kept where it is promoted from",
		"The tree would be in the branch, and in the folder, that has the platform, or the own files " +
			"of an environment. Each promotion would be a commit there, and so something new to promote."},
	{UnknownReference, UnknownReference.Severity(), "a reference to something that is not there",
		"The field names an entity of another collection, which has no entity of that name."},
	{DuplicateTarget, DuplicateTarget.Severity(), "two deployment targets have one full name",
		"<workload>-<target> names folders and objects. Workload a-b with target c and workload a with " +
			"target b-c cannot both be: what the platform declares stays, or else what the only " +
			"registration brings whose names cover the full name."},
	{ImpliedLabel, ImpliedLabel.Severity(), "a label is named like an implied key",
		"environment, workspace, workload, deploymentTarget and clusterType are facts that selectors " +
			"may use. A label of the same name would be ambiguous."},
	{DataSchema, DataSchema.Severity(), "an embedded JSON Schema was read as data",
		"Without type=jsonschema, @embed gives the schema's text as data, which constrains nothing."},
	{Registration, Registration.Severity(), "a registration brings what it must not, or nothing",
		"A registration brings workloads, configs or both from a folder of another repository: one CUE " +
			"package, or Workloads of the Kalypso scheduler as YAML. What it may bring, of which " +
			"workspace, in which layers and for which assignments, the platform says. Of several that " +
			"bring one name, the only one whose names cover it has it; what the platform declares is the " +
			"platform's. No source may be on the machine that locks the platform or on its own link."},
	{ClusterValues, ClusterValues.Severity(), "values of single clusters cannot be delivered",
		"The values of a cluster take the place of the composed ones there. How depends on the " +
			"reconciler of its cluster type: some have no way to do it, or only for values of some form, " +
			"which must then be the same for all clusters of the type."},
	{URLCredentials, URLCredentials.Severity(), "a URL has credentials",
		"What a URL has before its host, in its query or in its fragment is written to the tree, the " +
			"lock and logs, and goes to whatever the URL is used for. A user name alone is a token for " +
			"many servers, and so it is refused too, but for ssh. Sources get a secret by name with " +
			"secretRef, or by host with the credentials of the reconciler; `kalypso lock` and promotion " +
			"use what git, helm and docker know of a host. The address is not repeated, here or in files " +
			"that kalypso writes."},
	{ConfigSchema, ConfigSchema.Severity(), "a config schema of a registered Workload cannot be used",
		"Each text in configSchemas of a Workload, or of one of its deployment targets, is a JSON " +
			"Schema, and becomes a contract on the composed values. This one is none, or refers to " +
			"another. The workload or the target fails with it, since values that break the contract must " +
			"not be delivered."},
	{Misplaced, Misplaced.Severity(), "a tree would be written where its own objects do not point",
		"The files of a tree name their own place: assignments.yaml, the entries of clusters and what " +
			"bootstrap prints say which branch and which folder of it the reconciler pulls, as " +
			"environments.<environment>.gitops does. Written to another branch or folder, they would " +
			"point to something else, or to nothing."},
	{LostCluster, LostCluster.Severity(), "errors hide a cluster that is recorded",
		"By the record, a cluster of this cluster type pulls its folder, and an error hides what the " +
			"platform says of it now. Files that list all clusters of the type, such as an inventory or " +
			"an ApplicationSet, would leave it out, and take away what it runs. So they keep the cluster " +
			"as the record has it, with its address, labels and values, until the error is corrected, or " +
			"the cluster is removed from the platform. An assignment that takes a new value from each " +
			"cluster keeps its folder until then, and so do all of the cluster type where the record, of " +
			"an earlier version, does not say how the cluster was."},
	{BadInventory, BadInventory.Severity(), "an inventory cannot be read",
		"The file of an inventory is not there, or cannot be read to its end: which clusters the " +
			"environment has is not known. Until it is, what the record has of clusters that are not " +
			"there stays (K1310). A file without rows counts as one that cannot be read, unless " +
			"allowEmpty says that it is right."},
	{BadRow, BadRow.Severity(), "a row of an inventory cannot be used",
		"A row has no name, or a name that is none, a field of another type, more or fewer fields than " +
			"there are columns, or labels that its inventory does not allow. It harms its cluster alone: " +
			"that is left out, or stays as the record has it (K1310). Of many rows in which the same is " +
			"wrong the first ten are named."},
	{DuplicateCluster, DuplicateCluster.Severity(), "a cluster is there twice",
		"Two rows, of one inventory or of two, or a row and a cluster that the platform declares, have " +
			"one name. Which of them is right is not known, and none counts."},
	{ClusterWithoutType, ClusterWithoutType.Severity(),
		"a cluster is of no cluster type, or of several",
		"A cluster is of the cluster type that it names, else of the one that its inventory names, " +
			"else of the one whose clusters select it. Here none is found, or several."},
	{SplitClusterType, SplitClusterType.Severity(),
		"the clusters of a cluster type are of several classes",
		"Selectors of clusters, in policies, configs and config schemas, hold for some clusters of a " +
			"cluster type and not for others. Where all of them pull one folder that cannot be: the " +
			"environment stays as it is. With entries: \"cluster\" each cluster pulls an entry of its " +
			"own, which names the folder of its class."},
	{NoEntries, NoEntries.Severity(), "clusters cannot have entries of their own",
		"With entries: \"cluster\" a cluster pulls a small entry, which names the folder of its class, " +
			"and goes from one class to another by a commit. The reconciler of the cluster type cannot do " +
			"that without a gap, or a cluster type has the name of the folder of entries, clusters."},
	{BadSelector, BadSelector.Severity(), "a selector cannot be used",
		"A selector is a constraint on each field by itself: pattern fields and defaults have no " +
			"meaning in it."},
	{BadContract, BadContract.Severity(), "a contract is malformed",
		"requires and schema hold CUE constraints on the composed values, and change on what a " +
			"promotion would change. This one can never be satisfied, or is no struct."},
	{ExceptNothing, ExceptNothing.Severity(), "except selects nothing or everything",
		"except needs deploymentTargets, clusterTypes or both; an absent side means all of that side."},
	{BadPath, BadPath.Severity(), "a path cannot be read",
		"A path is the names of fields with dots between them: module.tag.reject-tags. Quote a name " +
			"with a dot in it."},
	{SelectsNoMore, SelectsNoMore.Severity(), "a selector selects nothing any more",
		"When the output was built, the selector selected something, and now it selects nothing: more " +
			"often a mistake than an intention. What it had selected stays as it is: assignments of a " +
			"policy are not removed, pairs that a policy denied stay denied, and assignments that a " +
			"config or config schema matched keep their folders. That ends when the selector selects " +
			"something again, when the policy, config or config schema is removed, when it says " +
			"allowEmpty: true, or with --allow-empty."},
	{NoContent, NoContent.Severity(), "an environment without content",
		"The environment is declared, and nothing is in it."},
	{SelectsNothing, SelectsNothing.Severity(), "a selector selects nothing",
		"No deployment target, cluster type or assignment satisfies it. Often a label is misspelt. " +
			"What the base says is judged over all environments: it may be for one of them. So the " +
			"warning comes when all are built; or for one, where a deployment target has no assignment " +
			"because of it. `kalypso vet` reports a scheduling policy as an error if nothing has the " +
			"label or field that it names, or if its value is one edit away from one that something has. " +
			"`allowEmpty: true` on the policy says that it may select nothing."},
	{Unassigned, Unassigned.Severity(), "a deployment target without any assignment",
		"It is deployed nowhere: no policy selects it, the policies that do select no cluster type, or " +
			"others take all its pairs away."},
	{EmptyClusterType, EmptyClusterType.Severity(), "a cluster type without assignments",
		"No policy assigns anything to it. One of the base is judged over all environments, when all " +
			"are built."},
	{LikelyMisspelt, LikelyMisspelt.Severity(), "a label or a key is one edit away from another",
		"Two labels differ in one letter, and one of them is used only once: probably a misspelling. " +
			"So is a key of the values that no contract names, and that differs in one letter from one " +
			"that a contract names. Let the contract name both where both are meant."},
	{ManyEntities, ManyEntities.Severity(), "a collection is too large for CUE",
		"CUE's time grows with the square of the number of fields once a struct has more than about " +
			"10,000. Split the environment, or move entities to cluster types of their own platform."},
	{PassedOver, PassedOver.Severity(), "a file is passed over",
		"CUE does not load files whose names begin with an underscore or end in _test.cue, and none " +
			"whose ending is not .cue in lower case. What such a file says is not there."},
	{OwnPolicy, OwnPolicy.Severity(), "a policy of promotion in an environment's own files",
		"How commits come to an environment, the base says for all of them. What the environment's own " +
			"files say of it has no effect, but for rings: a change of them would otherwise change the " +
			"rules for what is already on its way."},
	{SeveralFiles, SeveralFiles.Severity(), "a selector is written in several files",
		"All files of a package unify, so a second file that uses a name that is taken, such as " +
			"another team's `configs: edge`, narrows what the first one selects, and nothing else tells. " +
			"Give it a name of its own. Templates (`[_]: …`) and definitions may say what they like."},
	{UnpinnedSchema, UnpinnedSchema.Severity(), "the module does not pin the schema",
		"kalypso itself has the schema, and needs no pin. `cue vet`, `cue eval` and CUE's language " +
			"server find it by the version in cue.mod/module.cue only. Where kalypso is not installed, " +
			"`kalypso mod vendor` copies the schema into the platform instead."},
	{NotCUE, NotCUE.Severity(), "a YAML file beside the platform's files",
		"Platforms are written in CUE. A YAML file counts only where a CUE file embeds it. `cue import " +
			"FILE` makes CUE of it; an @embed attribute reads it as it is. Files at the root that have " +
			"nothing of a platform, as those of other tools, are not reported, and neither are those in " +
			"folders of their own."},
	{NoTargets, NoTargets.Severity(), "a workload without deployment targets",
		"A deployment target says in which environment a workload runs, and where its manifests are. " +
			"Without any the workload is deployed nowhere, and no policy can select it. This is said " +
			"where all environments are compiled, and none has an error."},
	{Unportable, Unportable.Severity(), "a name that not every file system can hold",
		"Windows keeps names such as con, aux and com1 for devices, whatever ending they have, and the " +
			"usual file systems of Windows and macOS hold one of two names that differ in case alone. " +
			"Whoever checks the repository out there gets an error, or one file in the place of two. " +
			"Cluster types and environments are folders of what is built."},
	{LeftCluster, LeftCluster.Severity(), "the entry of a cluster that is no longer listed stays",
		"A cluster is in the record, and no longer among the platform's clusters or in an inventory. " +
			"Its entry stays as it is, and with it the folder that it names, until the cluster is removed " +
			"by name: a row that is missing must not stop what runs."},
	{NoEnvironments, NoEnvironments.Severity(), "there are no environments",
		"What is assigned, built and promoted belongs to an environment, and the base declares none: " +
			"there is nothing to do for any command. An application has an environment for each folder " +
			"below environments that has a target."},
	{NoClusters, NoClusters.Severity(), "a config is for single clusters, and none is listed",
		"The config has values that follow from facts of a single cluster, #assignment.cluster, and no " +
			"cluster of the cluster type is listed, neither in clusters nor in an inventory. What pulls " +
			"the folder of the type gets none of its values."},
	{WaitingClusters, WaitingClusters.Severity(),
		"entries of clusters stay as they are because of errors",
		"Clusters are to follow another folder, of another class or cluster type, or to get other " +
			"values, and errors of assignments keep them: what the next folder lacks would be removed " +
			"from them, and what a folder keeps as it was may take values that only their entries have as " +
			"they were. So their entries stay, and clusters that are new get none, until the errors are " +
			"corrected. Errors that hide which class clusters are of keep them as well."},
	{OtherClusterType, OtherClusterType.Severity(), "a cluster goes to another cluster type",
		"By its row or its labels, a cluster is of another cluster type than its entry says. Objects " +
			"have the name of the cluster type in theirs: what runs on the cluster is removed, and runs " +
			"anew. With Flux, which fetches the folders of one cluster type alone, it stays until the " +
			"cluster is bootstrapped anew. This is said by the build that changes the entry."},
	{NumberOfPairs, NumberOfPairs.Severity(), "a bound is a number, and counts each cluster",
		"removals.max is a number, and the environment lists clusters. Such a number counts an " +
			"assignment on each cluster for itself: an application that leaves 20 stores counts 20. " +
			"Releases before this one counted it once. Write a percentage, or a number that fits."},
	{TreeMoved, TreeMoved.Severity(), "an environment's tree is kept elsewhere than before",
		"The environment's gitops names another repository, branch, tag or path than the one where its " +
			"tree was built before. Clusters go on pulling from there: they stay ready, run what is " +
			"there, and get no later change. Bootstrap them again with what kalypso bootstrap prints now. " +
			"The old tree stays, because clusters pull it until then; remove it when none does."},
	{OwnChangesSoak, OwnChangesSoak.Severity(), "changes of own files soak in rings",
		"A ring of the environment soaks commits in the rings before it, and the environment does not " +
			"say how changes of its own files reach the rings. They soak as well: the ring gets own files " +
			"only after they ran in the rings before it for as long as the gate says. Releases before " +
			"this one did not wait. Write ownChanges: \"rings\" to confirm this. Write ownChanges: " +
			"\"at-once\" to let the newest own files go on as soon as the rings before rolled them out."},
	{ConflictingValues, ConflictingValues.Severity(), "conflicting values",
		"Two configs that match the assignment give a key different values in the same layer, or one " +
			"config does in two places. No config wins by its name or its place. Two texts of one number, " +
			"1.5 and 1.50, are different values: an application gets a number as it is written."},
	{ConflictingDefaults, ConflictingDefaults.Severity(), "conflicting defaults",
		"Two configs of one layer give a key different defaults, so which one holds is open. So is it " +
			"where a list composes by mergeBy and two defaults of an element's field differ."},
	{FinalValue, FinalValue.Severity(), "a final value is contradicted",
		"A config of another layer gives a different value to a key whose value is final. Only a " +
			"default can be replaced."},
	{NoValue, NoValue.Severity(), "a value is not concrete",
		"The configs that match the assignment constrain the key, and none gives it a value."},
	{ConflictingOverrides, ConflictingOverrides.Severity(), "conflicting overrides",
		"Two configs of one layer override a key differently."},
	{BrokenConfig, BrokenConfig.Severity(), "a config that the assignment needs has errors",
		"The config has an error of its own, which is reported where it stands."},
	{Unsatisfied, Unsatisfied.Severity(), "the values break a contract",
		"The composed values lack a key that the contract requires, or have a value that it forbids. " +
			"The workload's, target's or platform's contract says which."},
	{ConflictingContracts, ConflictingContracts.Severity(), "contracts give a key different defaults",
		"Two contracts fill in a key that no config gives, each with another default."},
	{ListStrategies, ListStrategies.Severity(), "config schemas give a path different strategies",
		"How the lists at a path compose must not depend on which config schema comes first."},
	{ListStrategy, ListStrategy.Severity(), "a list strategy does not fit the values",
		"append, unique and mergeBy compose final lists; mergeBy needs elements that are structs with " +
			"the field."},
	{Function, Function.Severity(), "a function of #assignment fails",
		"The expression has no value for this assignment: a label or version that it uses is absent, " +
			"or CUE reports an error in it."},
	{NumberRange, NumberRange.Severity(), "a number is too large or too small",
		"Numbers are decimal and exact, and their exponents go from -100000 to 100000. CUE takes what " +
			"is beyond for 0, or for no number at all."},
	{TestFailed, TestFailed.Severity(), "a test fails",
		"A test of the platform asserts something of the assignments that it matches, and it does not " +
			"hold for these. Tests are run by `kalypso vet` and `kalypso test`; builds do not run them, " +
			"and no output depends on them."},
	{PinConflict, PinConflict.Severity(), "two policies pin one assignment differently",
		"An assignment has one version and one revision of its manifests."},
	{PinMismatch, PinMismatch.Severity(), "a pin does not fit the manifests",
		"A pin changes fields of the source that the deployment target has; it cannot change a git " +
			"source into a chart."},
	{DependsOn, DependsOn.Severity(), "a dependency cannot be met",
		"dependsOn names deployment targets that are assigned to the same cluster type, without cycles."},
	{NamespaceCollision, NamespaceCollision.Severity(),
		"two assignments of one cluster type share a namespace",
		"Each would own the other's namespace, and its removal would delete both."},
	{BadNamespace, BadNamespace.Severity(), "a namespace's name is not a DNS label",
		"The pattern of the namespace service must give lower case letters, digits and dashes."},
	{Override, Override.Severity(), "an override is in use",
		"The value replaces what other configs gave. Overrides are for emergencies: remove it once the " +
			"configs are right."},
	{Plaintext, Plaintext.Severity(), "a value looks like a secret in plain text",
		"The key has a name as secrets have, such as DB_PASSWORD, apiKey or AWS_ACCESS_KEY_ID, or the " +
			"value is like one: a private key, a URL with a password, a token of a well-known form, " +
			"characters at random. Refer to a secret store with schema.#Secret, or list the path under " +
			"plain if the value is none. The values of charts and the variables of playbooks are looked " +
			"at too, but for names that say where a secret is, such as existingSecret; and so are Secrets " +
			"with data that are rendered, or made by templates and functions. " +
			"environments.<name>.plaintextSecrets: \"error\" makes it an error: then the assignments are " +
			"not built."},
	{Advice, Advice.Severity(), "the values break a contract that only advises",
		"The contract has enforce: \"advise\", so the assignment is emitted all the same."},
	{Unfilled, Unfilled.Severity(), "a value has a variable that nothing fills in",
		"The value of a config has a variable as shells and Flux's postBuild have, ${NAME}, or an " +
			"expression of a template of Helm, {{ .Values.name }}. Neither kalypso nor the reconciler " +
			"replaces it: the application reads the text as it is. Write a field beside it as " +
			"\"\\(NAME)\", or a fact of the assignment as \"\\(#assignment.environment)\". If the " +
			"application fills it in, list the path under plain. Texts of several lines, texts with " +
			"conversions such as %d, as patterns of logs have, and values whose names hold a word such as " +
			"pattern, format, template, query, script or command are not looked at, nor are $${NAME} and " +
			"\\${NAME}."},
	{UnsupportedManifests, UnsupportedManifests.Severity(),
		"the reconciler cannot deliver these manifests",
		"The backend has no way to do what the manifests ask for."},
	{UndeliverableSecret, UndeliverableSecret.Severity(), "a secret cannot be delivered",
		"The value refers to a secret, and the namespace service of the cluster type does not say how " +
			"secrets are delivered."},
	{NeedsGitOps, NeedsGitOps.Severity(), "the environment's gitops is not given",
		"What is asked for refers to the repository, of git or of an OCI registry, that holds the " +
			"compiled tree: environments.<name>.gitops says which that is."},
	{NameCollision, NameCollision.Severity(), "an object is created twice",
		"Two assignments of one cluster type, or the namespace service and the rendered manifests of " +
			"one, create an object of the same kind, namespace and name: reconcilers would fight over it " +
			"for ever, or refuse the folder. Of two assignments the one gets it whose namespace it is in, " +
			"else the platform's own one of what a registration brings, and the other one fails; else " +
			"both fail."},
	{NotAnObject, NotAnObject.Severity(),
		"a manifest of the namespace service is no Kubernetes object",
		"An object has apiVersion, kind and metadata.name."},
	{HelmValues, HelmValues.Severity(), "application and platform values collide",
		"The chart's values already hold something at the path that platformValues names."},
	{BadConfigKey, BadConfigKey.Severity(), "a key cannot be part of the platform config",
		"Keys of a ConfigMap are letters, digits, '-', '_' and '.'; names of environment variables are " +
			"letters, digits and '_', and begin with no digit."},
	{BadSpec, BadSpec.Severity(), "the reconciler's or namespace service's fields do not fit together",
		"The fields are valid each, and impossible together."},
	{TooLarge, TooLarge.Severity(), "an object is too large for Kubernetes",
		"A ConfigMap holds one mebibyte, all keys and values together."},
	{ReconcilerChange, ReconcilerChange.Severity(), "a reconciler changes while a folder is kept",
		"An assignment that fails keeps its last good folder, with the objects of the reconciler that " +
			"it was built for. The cluster type stays with that reconciler until all of its assignments " +
			"can be built."},
	{NotLocked, NotLocked.Severity(), "a source is not in kalypso.lock",
		"What is rendered is pinned: kalypso.lock names the commit, version or digest of each source, " +
			"and a build reaches no network. `kalypso lock` resolves and fetches what is new, and leaves " +
			"what is pinned as it is."},
	{MissingContent, MissingContent.Severity(), "what kalypso.lock names is not in the store",
		"The source is pinned, and its content is neither in the platform's vendor folder nor in this " +
			"machine's store. `kalypso lock` fetches exactly what is pinned; where there is no network, " +
			"run `kalypso vendor` where there is one, and commit what it writes."},
	{DamagedContent, DamagedContent.Severity(),
		"the store holds something else than kalypso.lock names",
		"The content does not have the digest by which it is pinned: it was damaged or tampered with. " +
			"Remove the file, and fetch it again with `kalypso lock`, or with `kalypso vendor` where it " +
			"is in the vendor folder."},
	{BadSource, BadSource.Severity(),
		"the content of a source cannot be read, or is not to be trusted",
		"An archive that leads out of its folder, holds devices, or is beyond all bounds is not read, " +
			"and neither is a path that it does not have."},
	{Render, Render.Severity(), "a chart or an overlay cannot be rendered",
		"Helm or Kustomize says what is wrong with the source, or with the values that it gets."},
	{Unstable, Unstable.Severity(), "two renders of one chart differ",
		"The chart uses a function that gives something else each time, such as randAlphaNum, genCA or " +
			"now: each build would change what runs. A hook that the reconciler never runs, such as a " +
			"test, is no reason. Give the chart what it makes up as a value, or refer to the chart " +
			"instead of rendering it."},
	{Unbounded, Unbounded.Severity(),
		"a render, a registration or a file takes too long, or makes too much",
		"Rendering a source, or evaluating what a registration brings, may take half a minute of " +
			"processor time, a gibibyte of memory, and make 64 MiB. What others do on the machine " +
			"meanwhile does not count. YAML whose aliases make too much of it, that nests too deep or has " +
			"too many entries is refused before it is read. Only what needs it fails."},
	{KubernetesVersion, KubernetesVersion.Severity(),
		"a chart asks for the version of Kubernetes, which is not given",
		"What the chart renders to depends on the cluster. Helm's own default is an old version that " +
			"no cluster has: give the cluster type its kubernetesVersion, and in apiVersions what it has " +
			"installed."},
	{NotRendered, NotRendered.Severity(), "something rendered is no Kubernetes object",
		"An object has apiVersion, kind and metadata.name, and each field of Kubernetes' own kinds is " +
			"of the type that API servers decode it into: the data of a ConfigMap, labels, annotations " +
			"and the values of environment variables are strings. API servers refuse the whole object for " +
			"one field. Quote the value in the template, or in the values. An image that is no reference " +
			"of a registry, such as web:3.1e+06, is found too: API servers take it, and no pod with it " +
			"ever starts. Helm prints large numbers with an exponent, so quote a tag that is a number."},
	{Template, Template.Severity(), "a template fails, or makes what it should not",
		"A template fails on a key that is not there, and what it makes must be of its content type."},
	{BadFile, BadFile.Severity(), "a file cannot be written",
		"A file of an assignment's folder has a relative path of plain names, which no other file or " +
			"folder has, and a content."},
	{BadLock, BadLock.Severity(), "kalypso.lock cannot be read",
		"The file is written by `kalypso lock`, which does not write over one that it cannot read. " +
			"Restore it from git, or remove it to pin everything anew. After a merge conflict, take " +
			"either side and run `kalypso lock`."},
	{NoBootstrap, NoBootstrap.Severity(), "there is nothing that lets a cluster pull its folder",
		"kalypso bootstrap prints what lets a cluster pull its folder. What pulls the files of a " +
			"platform team's own reconciler is its own as well, and a package that is carried to a site " +
			"is not pulled at all."},
	{NoSecret, NoSecret.Severity(), "a source gets no secret, and may need one",
		"Credentials belong to hosts. The secretRef of a reconciler is for git sources of the " +
			"platform's own workloads on the host of the environment's gitops.repo: a git server " +
			"elsewhere, a chart repository, a registry or the source of what is registered would " +
			"otherwise get the token of the platform's repositories. So the reconciler says which host " +
			"gets which secret, in credentials; an entry without secretRef says that the host needs none, " +
			"and anonymous: true says so of one source."},
	{ForeignSecret, ForeignSecret.Severity(),
		"a registration names a secret that its host does not get",
		"Secrets are named in the platform's namespace, and whoever writes a registered workload could " +
			"name any of them beside a host of their own. So its secretRef counts only if it is the " +
			"secret that the reconciler's credentials give to that host."},
	{Bounds, Bounds.Severity(), "an assignment goes beyond its workspace",
		"workspaces says what the workloads of a team may bring: which objects, to which namespaces, " +
			"from which sources, which files on machines, in which environments and on which cluster " +
			"types. What the platform declares for a workspace that is not declared has the bounds of " +
			"kalypso.io/stdlib/workspace's #Team, and what a registration brings those of #Tenant. The " +
			"assignment keeps its last good folder."},
	{NoPolicies, NoPolicies.Severity(), "nobody knows as whom a reconciler applies things",
		"The policies of kalypso bootstrap --policies look at requests of the accounts that apply " +
			"assignments, so that those of people and controllers pass. They cannot be for a reconciler " +
			"that runs in the name of whoever starts it, that only the platform team knows, or that " +
			"changes machines."},
	{Encrypted, Encrypted.Severity(), "something encrypted is not decrypted by anything",
		"SOPS has encrypted a Secret, or another object, and what applies it would deliver the " +
			"ciphertext as the value. Flux decrypts what it applies if its reconciler has decryption, for " +
			"workspaces that may use that secret, and only whole objects with the metadata of SOPS, in " +
			"which the metadata of the object itself are readable. Argo CD, Fleet and Zarf decrypt " +
			"nothing; a plugin of theirs may, in manifests that they fetch. Else let the manifests refer " +
			"to a Secret that exists, or to a secret store. Objects of custom kinds pass, since an " +
			"operator may decrypt them on the cluster."},
	{RemovesNamespace, RemovesNamespace.Severity(), "a namespace is removed or renamed",
		"Everything in the namespace goes with it. deletion: \"orphan\" on the namespace service " +
			"leaves it on the cluster. Machines have no namespaces: there the user goes with its " +
			"directories, and so do packages, files and units. Argo CD removes nothing while it retries a " +
			"failed sync: it waits for the last retry, an hour after the first attempt unless " +
			"syncPolicy.retry says otherwise, and nothing new reaches the cluster type until then. To end " +
			"the retries of the Application NAME at once, run `argocd app terminate-op NAME`, or `kubectl " +
			"-n argocd patch applications.argoproj.io NAME --type merge -p " +
			"'{\"status\":{\"operationState\":{\"phase\":\"Terminating\"}}}'`."},
	{NotWaitedFor, NotWaitedFor.Severity(), "a dependency is applied, and not waited for",
		"dependsOn promises that the other deployment target is ready. Its reconciler has wait: false, " +
			"so it only knows when the objects are applied; or it is an optional part of a package, which " +
			"may be left out."},
	{NoEffect, NoEffect.Severity(), "a field has no effect here",
		"The reconciler has no way to do what the field says for these manifests."},
	{IndexGoes, IndexGoes.Severity(), "assignments.yaml goes",
		"Without the environment's gitops the folders of a cluster type are listed, instead of being " +
			"applied by one object each. The reconciler deletes those objects, and what they applied with " +
			"them."},
	{EnvironmentGone, EnvironmentGone.Severity(), "the output of an environment that is gone stays",
		"The platform has no such environment any more, and what was built for it is still there: a " +
			"reconciler that pulls it goes on applying it. kalypso removes nothing of an environment that " +
			"it does not build. Take the clusters off the folder, then remove it."},
	{Hook, Hook.Severity(), "a hook of a chart is applied as an ordinary object, or not at all",
		"Helm runs hooks around an installation, and Argo CD around a sync; the reconciler that " +
			"applies rendered manifests knows nothing of them. Refer to the chart instead of rendering it " +
			"where its hooks matter; hooks of Argo CD only run with Argo CD."},
	{Unpinned, Unpinned.Severity(), "something is not pinned where it should be",
		"What is fetched by a name that can move may be something else tomorrow. Pin it by digest, " +
			"commit or exact version."},
	{NoRestart, NoRestart.Severity(), "restartOnConfigChange has no effect",
		"Pods restart when an annotation of their template changes. A reconciler that fetches the " +
			"manifests has to add it: Flux does so to all, Argo CD to overlays (`manifests: kustomize`), " +
			"and Fleet and Zarf to nothing. What is rendered has it on every reconciler for Kubernetes: " +
			"set `render: true`. Templates and functions of the platform write what they like."},
	{RetainsObjects, RetainsObjects.Severity(),
		"objects stay on the clusters when their assignment goes",
		"CustomResourceDefinitions of rendered manifests outlive their assignment, unless the source " +
			"says crds: \"delete\": with them all objects of their kinds would go, those of others " +
			"included. So do objects with the annotation helm.sh/resource-policy: keep whose namespace " +
			"stays. The warning names what nobody manages any more."},
	{EncryptedObject, EncryptedObject.Severity(), "an encrypted object is written as it is",
		"An application's tree holds an object that SOPS has encrypted. Whatever applies the tree has " +
			"to decrypt it: a Kustomization of Flux with decryption, which a flux reconciler of kalypso " +
			"writes if it has decryption too."},
	{ForeignFile, ForeignFile.Severity(), "a file that kalypso did not write is in the way",
		"kalypso overwrites and removes only what its record says it wrote. Move the file, or let " +
			"kalypso take it over with --adopt."},
	{ForeignRecord, ForeignRecord.Severity(), "the folder belongs to another platform",
		"The folder's record names another platform or another environment. Write to a folder, or a " +
			"branch, of its own."},
	{BadRecord, BadRecord.Severity(), "the folder's record cannot be read",
		"The record says what kalypso wrote there: .kalypso/provenance.json lists the cluster types, " +
			"and .kalypso/cluster-types has a file for each of them. One of these is missing, damaged, " +
			"not the one that provenance.json names, or of another version of kalypso. Restore all of " +
			".kalypso from git; without it, --adopt takes over the files that are there."},
	{KeptMissing, KeptMissing.Severity(), "a kept folder is not there",
		"The folder of an assignment that failed is to stay as it was, and files of it are missing. " +
			"Restore them from git, or correct the errors, so that the folder is built again."},
	{TooManyRemovals, TooManyRemovals.Severity(), "a build would remove too much from clusters",
		"One build removes at most removals.max of the environment: by default 25% of the recorded " +
			"assignments, each of them counted on each cluster. A namespace that gets another name counts " +
			"as removed, since everything in it goes. Up to three assignments on up to three clusters may " +
			"always go, unless removals.max is 0. The build must not leave a listed cluster without any " +
			"assignment, unless removals.emptied allows it, and must not empty the environment. At most " +
			"the same part of the listed clusters may go; clusters named in removals.clusters do not " +
			"count. Otherwise kalypso writes nothing of the environment. Pass --allow-removals to remove " +
			"more; in promotion this is the gate removals. Assignments that are kept are not removed."},
}
