#compdef cellblock
# SPDX-License-Identifier: MIT
# zsh completion for cellblock(1)

_cellblock_keys()
{
	local -a keys

	keys=(
		'cell.timeout:wall-clock limit of each cell'
		'cell.grace:time from the interrupt to the kill'
		'cell.cpu:CPU time of each cell, for all its processes together'
		'cell.output:output shown of each cell; the rest is only counted'
		'cell.tail:how much of the end is shown when output was cut'
		'cell.source:longest source of a cell'
		'cell.background:what happens to running processes between cells'
		'cell.undo:most states kept for \:undo'
		'cell.checkpoint:when to take a checkpoint after a cell'
		'session.memory:memory for the whole jail'
		'session.processes:processes and threads for the whole jail'
		'session.cpus:processor cores for the whole jail'
		'session.idle:end a session that waits this long for the person'
		'session.lifetime:end a session after this long'
		'session.until:time of day at which all sessions end, such as 18\:00'
		'session.per_user:sessions one person may have at once'
		'session.maker:whether the maker of this host makes the session'
		'session.linger:how long a session goes on without a terminal'
		'session.confirm:Ctrl-D asks before it leaves variables that were not saved'
		'session.attach:a terminal may come to a session that has begun'
		'home.size:how many bytes the home may hold'
		'home.files:how many files and directories the home may hold'
		'home.skeleton:directory copied into the home at the start'
		'files.max_file:largest file in a transfer'
		'files.max_count:largest number of files in a transfer'
		'files.pattern:which files of the home an answer of --eval has'
		'files.timeout:time to put files into an answer of --eval'
		'files.upload_from:host directories a locked session may upload from'
		'files.download_to:host directories a locked session may download to'
		'files.remote:scp, sftp and rsync over ssh reach the home of a session'
		'files.share:programs over ssh run in the home of a session'
		'python.executable:interpreters; the first is the default'
		'python.packages:directories of packages, read-only in the jail'
		'python.startup:a cell run at the start of a session'
		'python.env.NAME:an environment variable of Python'
		'python.recursion:Python'\''s recursion limit'
		'jail.expose:host files and directories shown read-only in the jail'
		'jail.network:no interface at all, or the jail'\''s own loopback'
		'jail.uids:host ids for the jails of sessions started by root'
		'jail.require:what this host must enforce strongly; otherwise nothing starts'
		'serve.concurrent:requests of --serve that run at a time'
		'serve.queue:requests of --serve that may wait'
		'serve.per_client:requests of one client of --serve at a time'
		'serve.spare:jails that --serve makes ahead, of each kind'
		'serve.request:largest request of --serve, but for uploads'
		'serve.clients:clients of --serve at a time'
		'serve.upload:largest file that is uploaded to --serve'
		'serve.storage:all files that --serve keeps together'
		'serve.files:how many files --serve keeps'
		'serve.keep:how long --serve keeps a file'
		'serve.answers:answers that --serve keeps for an Idempotency-Key'
		'serve.answers_size:all answers that --serve keeps together'
		'serve.answers_keep:how long --serve keeps an answer'
		'serve.away:how long a request with an Idempotency-Key goes on without its client'
		'serve.directory:where --serve keeps its files, which have no names'
		'serve.token_file:file with the tokens of clients of --serve'
		'serve.sessions:sessions of --serve at a time'
		'serve.sessions_per_client:sessions of one client of --serve at a time'
		'serve.drain:how long --serve still serves while /health says that it ends'
		'serve.name:what the ids of sessions of --serve begin with'
		'serve.log:which requests --serve logs'
		'serve.log_to:where the log of --serve goes'
		'maker.memory:memory for all sessions of the maker together'
		'maker.reserve:no new session while the host has less memory available'
		'maker.sessions:sessions of the maker at a time, for all persons'
		'maker.hosts:directory in which hosts tell each other who has a session where'
		'maker.reach:name that a person types to reach this host and no other'
		'maker.drain:the maker makes no new session; those that run go on'
		'spare.jails:jails that the maker makes ahead, of each kind'
		'lab.course:the course that the person is in'
		'lab.exercise:the exercise that persons hand in now'
		'lab.submit:directory that takes what is handed in; {course} is the course'
		'lab.deadline:deadline of the exercise, such as 2026-12-04 18\:00'
		'lab.quota:bytes of all versions that a person hands in of an exercise'
		'terminal.escapes:which terminal sequences of a cell reach the terminal'
		'terminal.prompt:the prompt'
		'terminal.colour:colour of the prompt, the input and our own lines'
		'terminal.banner:show the version and the limits when a session starts'
		'terminal.keys:keys of the editor'
		'terminal.suggest:show how the text went on in an earlier cell, and parameters of calls'
		'terminal.history:keep cells for later sessions, and show those of earlier ones'
		'terminal.pictures:how pictures are drawn'
		'log.syslog:record who had or watched a session, when, and which limit was reached'
		'log.transcript:directory for transcripts of sessions'
		'log.accounting:file of who had a session of the maker, and what it used'
		'exam.begin:no session before this time of the host'
		'exam.end:end of every session, and no session after it'
		'exam.hand_in:which files of the home are handed in when a session ends'
		'policy.locked:the person'\''s own settings can only be stricter'
		'policy.programs:programs of a login run, beside sessions'
		'policy.commands:which \: commands are available'
	)
	_describe -t keys 'configuration key' keys -qS =
}

# Behind --attach, --end, --message and --watch a session, else a program.
_cellblock_first()
{
	local -a ids

	if (($words[(I)--(attach|end|message|watch)])); then
		ids=(${${(f)"$(cellblock --sessions 2>/dev/null)"}[2,-1]%% *})
		(($words[(I)--end])) && ids+=(all)
		_describe -t sessions session ids
	else
		_files
	fi
}

# Behind --end and a session: more of them, a text and a directory.
if ((${words[(i)--end]} < CURRENT - 1)); then
	case ${words[CURRENT - 1]} in
	--save) _files -/ ;;
	-m) ;;
	*)
		if [[ $PREFIX == -* ]]; then
			_values option '-m[say why]' \
				'--save[copy each home there first, as root]'
		else
			_cellblock_first
		fi
		;;
	esac
	return
fi

_arguments -s -S \
	'(-f --config)'{-f,--config}'[configuration instead of the usual files]:file:_files' \
	'*'{-s,--set}'[set one key of the configuration]:key:_cellblock_keys' \
	'(-t --timeout)'{-t,--timeout}'[time for each cell]:time:(1s 10s 1m 5m 1h)' \
	'(-M --memory)'{-M,--memory}'[memory for the whole jail]:size:(128M 256M 512M 1G 2G)' \
	'*'{-u,--upload}'[copy a file into the jail before the start]:file:_files' \
	'*'{-d,--download}'[copy files out after the end]:pattern:' \
	'(-p --python)'{-p,--python}'[another interpreter]:interpreter:_files' \
	'--overwrite[let -u and -d overwrite files]' \
	'(-q --quiet -v --verbose)'{-q,--quiet}'[no banner, no notices about the host]' \
	'(-q --quiet -v --verbose)'{-v,--verbose}'[say more]' \
	'--json[answer of --check, --sessions, --report, --collect or --grade as JSON]' \
	'(-)-c[program from the command line]:code:' \
	'(-)-m[module as a program]:module:' \
	'-e[one cell; the value of a last expression is shown]:cell:' \
	'--eval[JSON requests from standard input]' \
	'--grade[tests on many submissions]:plan:_files' \
	'--junit[file for the XML of --grade]:file:_files' \
	'--share[share of the submissions of --grade]:share:(0/2)' \
	'-j[submissions of --grade at a time]:number:' \
	'-o[file for the results of --grade, archive of --collect]:file:_files' \
	'--serve[JSON requests over HTTP]' \
	'--maker[as root: sessions for the people of this host]' \
	'--mcp[a session for an agent: Model Context Protocol]' \
	'--sessions[which sessions there are]' \
	'--attach[back to a session that goes on]' \
	'--new[a new session, without a question]' \
	'--end[end a session]' \
	'--message[show a text in a session]' \
	'--watch[show what a session shows]' \
	'--collect[as root\: what was handed in]' \
	'-a[every version, with --collect]' \
	'--report[who had sessions, and what they used]' \
	'--since[only since that time]:time:(1h 1d 7d)' \
	'--csv[answer of --report for spreadsheets]' \
	'--check[what this host enforces]' \
	'--check-config[the configuration, and which file set what]' \
	'(- *)'{-h,--help}'[help]' \
	'(- *)'{-V,--version}'[version]' \
	'1:program:_cellblock_first' \
	'*::argument:_files'
