# SPDX-License-Identifier: MIT
# bash completion for cellblock(1)

_cellblock_keys='cell.timeout cell.grace cell.cpu cell.output cell.tail
cell.source cell.background cell.undo cell.checkpoint session.memory
session.processes session.cpus session.idle session.lifetime session.until session.per_user
session.maker maker.memory maker.reserve maker.sessions maker.hosts maker.reach maker.drain spare.jails
lab.course lab.exercise lab.submit lab.deadline lab.quota
session.linger session.confirm session.attach
home.size home.files home.skeleton files.max_file files.max_count
files.pattern files.timeout
files.upload_from files.download_to files.remote files.share
python.executable python.packages python.startup python.env.NAME
python.recursion jail.expose jail.network jail.uids jail.require
serve.concurrent serve.queue serve.per_client serve.spare serve.request
serve.clients serve.upload serve.storage serve.files serve.keep serve.directory
serve.token_file serve.sessions serve.sessions_per_client serve.drain serve.name
serve.log serve.log_to
serve.answers serve.answers_size serve.answers_keep serve.away
terminal.escapes terminal.prompt terminal.colour
terminal.banner terminal.keys terminal.suggest terminal.history terminal.pictures log.syslog
log.transcript log.accounting exam.begin exam.end exam.hand_in policy.locked policy.programs policy.commands'

_cellblock_options='--timeout --memory --upload --download --python --config
--set --overwrite --quiet --verbose --help --version --eval --grade --junit --share -a -j -o --serve --maker --mcp
--sessions --attach --new --end --message --watch --collect --report --since --csv --check --json
--check-config
-t -M -u -d -p -f -s -q -v -h -V -c -m -e'

# Words that take the next word as their argument.
_cellblock_takes_argument()
{
	case $1 in
	--config | --set | --timeout | --memory | --upload | --download | \
		--python | --since | -f | -s | -t | -M | -u | -d | -p | -e)
		return 0
		;;
	esac
	return 1
}

# Whether the words before the current one already name the program.
_cellblock_in_program()
{
	local i=1

	while ((i < COMP_CWORD)); do
		case ${COMP_WORDS[i]} in
		-c | -m) return 0 ;;
		--check-config | -) ;;
		-*) _cellblock_takes_argument "${COMP_WORDS[i]}" && ((i++)) ;;
		*) return 0 ;;
		esac
		((i++))
	done
	return 1
}

_cellblock()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} all=

	COMPREPLY=()
	if [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *' --end '* && $prev != --end ]]; then
		case $prev in
		--save) COMPREPLY=($(compgen -d -- "$cur")) ;;
		-m) ;;
		*)
			COMPREPLY=($(compgen -W "-m --save $(cellblock --sessions \
				2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur"))
			;;
		esac
		return
	fi
	if _cellblock_in_program; then
		COMPREPLY=($(compgen -f -- "$cur"))
		return
	fi
	case $prev in
	-s | --set)
		compopt -o nospace 2>/dev/null
		COMPREPLY=($(compgen -S = -W "$_cellblock_keys" -- "$cur"))
		;;
	-t | --timeout)
		COMPREPLY=($(compgen -W '1s 10s 1m 5m 1h' -- "$cur"))
		;;
	-M | --memory)
		COMPREPLY=($(compgen -W '128M 256M 512M 1G 2G' -- "$cur"))
		;;
	-c | -m | -e) ;;
	--since)
		COMPREPLY=($(compgen -W '1h 1d 7d' -- "$cur"))
		;;
	--attach | --end | --message | --watch)
		[[ $prev = --end ]] && all=all
		COMPREPLY=($(compgen -W "$all $(cellblock --sessions 2>/dev/null |
			awk 'NR > 1 { print $1 }')" -- "$cur"))
		;;
	*)
		case $cur in
		-*)
			COMPREPLY=($(compgen -W "$_cellblock_options" -- "$cur"))
			;;
		*)
			compopt -o filenames 2>/dev/null
			COMPREPLY=($(compgen -f -- "$cur"))
			;;
		esac
		;;
	esac
}

complete -F _cellblock cellblock
