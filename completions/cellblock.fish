# SPDX-License-Identifier: MIT
# fish completion for cellblock(1)

# After the program, every word belongs to the program.
function __cellblock_before_program
	set -l words (commandline -opc)[2..]
	while set -q words[1]
		switch $words[1]
			case -c -m
				return 1
			case -t -M -u -d -p -f -s -e --timeout --memory --upload --download --python --config --set
				set -e words[1]
			case -
				return 1
			case '-*'
			case '*'
				return 1
		end
		set -e words[1]
	end
end

complete -c cellblock -n __cellblock_before_program -s f -l config -r -F -d 'Configuration instead of the usual files'
complete -c cellblock -n __cellblock_before_program -s t -l timeout -x -a '1s 10s 1m 5m 1h' -d 'Time for each cell'
complete -c cellblock -n __cellblock_before_program -s M -l memory -x -a '128M 256M 512M 1G 2G' -d 'Memory for the whole jail'
complete -c cellblock -n __cellblock_before_program -s u -l upload -r -F -d 'Copy a file into the jail before the start'
complete -c cellblock -n __cellblock_before_program -s d -l download -x -d 'Copy files out after the end'
complete -c cellblock -n __cellblock_before_program -s p -l python -r -F -d 'Another interpreter'
complete -c cellblock -n __cellblock_before_program -l overwrite -d 'Let -u and -d overwrite files'
complete -c cellblock -n __cellblock_before_program -s q -l quiet -d 'No banner, no notices'
complete -c cellblock -n __cellblock_before_program -s v -l verbose -d 'Say more'
complete -c cellblock -n __cellblock_before_program -l json -d 'Answer of --check, --sessions, --report, --collect or --grade as JSON'
complete -c cellblock -n __cellblock_before_program -s c -x -d 'Program from the command line'
complete -c cellblock -n __cellblock_before_program -s m -x -d 'Module as a program'
complete -c cellblock -n __cellblock_before_program -s e -x -d 'One cell; the value of a last expression is shown'
complete -c cellblock -n __cellblock_before_program -l eval -d 'JSON requests from standard input'
complete -c cellblock -n __cellblock_before_program -l grade -r -F -d 'Tests on many submissions'
complete -c cellblock -n '__fish_contains_opt grade' -s j -x -d 'Submissions at a time'
complete -c cellblock -n '__fish_contains_opt grade' -s o -r -F -d 'File for the results'
complete -c cellblock -n '__fish_contains_opt collect' -s o -r -F -d 'Archive to write'
complete -c cellblock -n '__fish_contains_opt collect' -s a -d 'Every version'
complete -c cellblock -n __cellblock_before_program -l junit -r -F -d 'File for the XML'
complete -c cellblock -n __cellblock_before_program -l share -x -d 'Share K/N of the submissions'
complete -c cellblock -n __cellblock_before_program -l serve -d 'JSON requests over HTTP'
complete -c cellblock -n __cellblock_before_program -l maker -d 'As root: sessions for the people of this host'
complete -c cellblock -n __cellblock_before_program -l mcp -d 'A session for an agent: Model Context Protocol'
complete -c cellblock -n __cellblock_before_program -l sessions -d 'Which sessions there are'
complete -c cellblock -n __cellblock_before_program -l attach -d 'Back to a session that goes on'
complete -c cellblock -n __cellblock_before_program -l new -d 'A new session, without a question'
complete -c cellblock -n __cellblock_before_program -l end -d 'End a session'
complete -c cellblock -n __cellblock_before_program -l message -d 'Show a text in a session'
complete -c cellblock -n __cellblock_before_program -l watch -d 'Show what a session shows'
complete -c cellblock -n '__fish_prev_arg_in --attach --end --message --watch' -f -a '(cellblock --sessions 2>/dev/null | tail -n +2 | string replace -r " .*" "")' -d Session
complete -c cellblock -n '__fish_contains_opt end' -l save -x -a '(__fish_complete_directories)' -d 'Copy each home there first, as root'
complete -c cellblock -n '__fish_prev_arg_in --end' -f -a all -d 'Every session of yours'
complete -c cellblock -n __cellblock_before_program -l collect -d 'As root: what was handed in'
complete -c cellblock -n __cellblock_before_program -l report -d 'Who had sessions, and what they used'
complete -c cellblock -n __cellblock_before_program -l since -x -a '1h 1d 7d' -d 'Only since that time'
complete -c cellblock -n __cellblock_before_program -l csv -d 'Answer of --report for spreadsheets'
complete -c cellblock -n __cellblock_before_program -l check -d 'What this host enforces'
complete -c cellblock -n __cellblock_before_program -l check-config -d 'The configuration, and which file set what'
complete -c cellblock -n __cellblock_before_program -s h -l help -d 'Help'
complete -c cellblock -n __cellblock_before_program -s V -l version -d 'Version'

# --set: each key, up to its equals sign.
function __cellblock_keys
	printf '%s=\t%s\n' \
		cell.timeout 'wall-clock limit of each cell' \
		cell.grace 'time from the interrupt to the kill' \
		cell.cpu 'CPU time of each cell, for all its processes together' \
		cell.output 'output shown of each cell; the rest is only counted' \
		cell.tail 'how much of the end is shown when output was cut' \
		cell.source 'longest source of a cell' \
		cell.background 'what happens to running processes between cells' \
		cell.undo 'most states kept for :undo' \
		cell.checkpoint 'when to take a checkpoint after a cell' \
		session.memory 'memory for the whole jail' \
		session.processes 'processes and threads for the whole jail' \
		session.cpus 'processor cores for the whole jail' \
		session.idle 'end a session that waits this long for the person' \
		session.lifetime 'end a session after this long' \
		session.until 'time of day at which all sessions end, such as 18:00' \
		session.per_user 'sessions one person may have at once' \
		session.maker 'whether the maker of this host makes the session' \
		session.linger 'how long a session goes on without a terminal' \
		session.confirm 'Ctrl-D asks before it leaves variables that were not saved' \
		session.attach 'a terminal may come to a session that has begun' \
		home.size 'how many bytes the home may hold' \
		home.files 'how many files and directories the home may hold' \
		home.skeleton 'directory copied into the home at the start' \
		files.max_file 'largest file in a transfer' \
		files.max_count 'largest number of files in a transfer' \
		files.pattern 'which files of the home an answer of --eval has' \
		files.timeout 'time to put files into an answer of --eval' \
		files.upload_from 'host directories a locked session may upload from' \
		files.download_to 'host directories a locked session may download to' \
		files.remote 'scp, sftp and rsync over ssh reach the home of a session' \
		files.share 'programs over ssh run in the home of a session' \
		python.executable 'interpreters; the first is the default' \
		python.packages 'directories of packages, read-only in the jail' \
		python.startup 'a cell run at the start of a session' \
		python.env.NAME 'an environment variable of Python' \
		python.recursion 'Python\'s recursion limit' \
		jail.expose 'host files and directories shown read-only in the jail' \
		jail.network 'no interface at all, or the jail\'s own loopback' \
		jail.uids 'host ids for the jails of sessions started by root' \
		jail.require 'what this host must enforce strongly; otherwise nothing starts' \
		serve.concurrent 'requests of --serve that run at a time' \
		serve.queue 'requests of --serve that may wait' \
		serve.per_client 'requests of one client of --serve at a time' \
		serve.spare 'jails that --serve makes ahead, of each kind' \
		serve.request 'largest request of --serve, but for uploads' \
		serve.clients 'clients of --serve at a time' \
		serve.upload 'largest file that is uploaded to --serve' \
		serve.storage 'all files that --serve keeps together' \
		serve.files 'how many files --serve keeps' \
		serve.keep 'how long --serve keeps a file' \
		serve.answers 'answers that --serve keeps for an Idempotency-Key' \
		serve.answers_size 'all answers that --serve keeps together' \
		serve.answers_keep 'how long --serve keeps an answer' \
		serve.away 'how long a request with an Idempotency-Key goes on without its client' \
		serve.directory 'where --serve keeps its files, which have no names' \
		serve.token_file 'file with the tokens of clients of --serve' \
		serve.sessions 'sessions of --serve at a time' \
		serve.sessions_per_client 'sessions of one client of --serve at a time' \
		serve.drain 'how long --serve still serves while /health says that it ends' \
		serve.name 'what the ids of sessions of --serve begin with' \
		serve.log 'which requests --serve logs' \
		serve.log_to 'where the log of --serve goes' \
		maker.memory 'memory for all sessions of the maker together' \
		maker.reserve 'no new session while the host has less memory available' \
		maker.sessions 'sessions of the maker at a time, for all persons' \
		maker.hosts 'directory in which hosts tell each other who has a session where' \
		maker.reach 'name that a person types to reach this host and no other' \
		maker.drain 'the maker makes no new session; those that run go on' \
		spare.jails 'jails that the maker makes ahead, of each kind' \
		lab.course 'the course that the person is in' \
		lab.exercise 'the exercise that persons hand in now' \
		lab.submit 'directory that takes what is handed in; {course} is the course' \
		lab.deadline 'deadline of the exercise, such as 2026-12-04 18:00' \
		lab.quota 'bytes of all versions that a person hands in of an exercise' \
		terminal.escapes 'which terminal sequences of a cell reach the terminal' \
		terminal.prompt 'the prompt' \
		terminal.colour 'colour of the prompt, the input and our own lines' \
		terminal.banner 'show the version and the limits when a session starts' \
		terminal.keys 'keys of the editor' \
		terminal.suggest 'show how the text went on in an earlier cell, and parameters of calls' \
		terminal.history 'keep cells for later sessions, and show those of earlier ones' \
		terminal.pictures 'how pictures are drawn' \
		log.syslog 'record who had or watched a session, when, and which limit was reached' \
		log.transcript 'directory for transcripts of sessions' \
		log.accounting 'file of who had a session of the maker, and what it used' \
		exam.begin 'no session before this time of the host' \
		exam.end 'end of every session, and no session after it' \
		exam.hand_in 'which files of the home are handed in when a session ends' \
		policy.locked 'the person\'s own settings can only be stricter' \
		policy.programs 'programs of a login run, beside sessions' \
		policy.commands 'which : commands are available'
end

complete -c cellblock -n __cellblock_before_program -s s -l set -x -a '(__cellblock_keys)' -d 'Set one key of the configuration'
