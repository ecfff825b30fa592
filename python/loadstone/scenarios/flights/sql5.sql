select origin_state, dest_state, count(*) as cnt, avg(airtime) as atime
from flights
where distance < 175
group by origin_state, dest_state
