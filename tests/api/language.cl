// Kernels that use what section 6 of OpenCL C has in unusual ways, for `language.rs`, which builds each between two lines with
// `==` alone. Work-item `I` of 16 writes its results to words of its own.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define I get_global_id(0)
// Writes the next words of `o`.
#define P1(e) o[p++]=(uint)(e)
#define P4(e) {P1((e).x);P1((e).y);P1((e).z);P1((e).w);}

//== literals
kernel void literals(global uint*in, global uint*out) {
    int i=I;
    int4 a=(int4)((int2)(1,2),3,(int)in[i]);
    int8 b=(int8)(a,(int3)(5,6,7),8);
    int16 c=(int16)(b, (int4)(9), a.wzyx);
    float4 f=(float4)(1.0f,(float2)(0x1.8p1f,1e-3f),(float)'a');
    uchar3 u=(uchar3)(0xff,010,'\n');
    long l=0x7fffffffffffffffL;
    ulong ul=18446744073709551615UL;
    global uint*o=out+i*64;
    vstore16(as_uint16(c),0,o);
    vstore4(as_uint4(f),0,o+16);
    o[20]=u.x;
    o[21]=u.y;
    o[22]=u.z;
    o[23]=(uint)(l>>32);
    o[24]=(uint)ul;
    o[25]=sizeof(int3);
    o[26]=sizeof(half);
    o[27]=(uint)(1.0/3.0*1e9);
    o[28]=as_uint(1.0f/3);
    o[29]=sizeof(1.0f);
    o[30]=-1>>31;
    o[31]='ab';
    o[32]=as_uint((float)INFINITY);
    o[33]=as_uint(MAXFLOAT);
    o[34]=as_uint(M_PI_F);
    o[35]=(uint)CHAR_MIN;
    o[36]=(uint)(LONG_MIN>>40);
}

//== reinterpretation
kernel void reinterpretation(global uint*in, global uint*out) {
    int i=I;
    int3 a=vload3(i,(global int*)in);
    float4 f=as_float4(a);
    global uint*o=out+i*32;
    o[0]=as_uint(f.x);
    o[1]=as_uint(f.y);
    o[2]=as_uint(f.z);
    char3 c=(char3)(1,2,3);
    c.x=in[i];
    int q=as_int(c) & 0xffffff;
    o[3]=q;
    short3 s=as_short3((ushort3)(0xffff,in[i],7));
    o[4]=s.x;
    o[5]=s.y;
    o[6]=s.z;
    uchar4 u4=as_uchar4(in[i]);
    o[7]=u4.s3;
    double3 d=as_double3((long3)(in[i],5,-1L));
    o[8]=as_long(d.x);
    o[9]=as_ulong(d.z)>>32;
    ulong2 x=as_ulong2(vload4(i,in));
    o[10]=x.x>>32;
    o[11]=x.y;
    uchar16 z=as_uchar16((ulong2)(x.x,5));
    o[12]=z.sf;
    o[13]=z.s7;
    o[14]=z.s8;
}

//== halves_of_vectors
kernel void halves_of_vectors(global uint*in, global uint*out) {
    int i=I;
    int3 a=vload3(i,(global int*)in);
    global uint*o=out+i*32;
    int2 h=a.hi,l=a.lo,e=a.even,d=a.odd;
    o[0]=h.x;
    o[1]=l.x;
    o[2]=l.y;
    o[3]=e.x;
    o[4]=e.y;
    o[5]=d.x;
    int16 v=vload16(i,(global int*)in);
    int8 b=v.odd.hi.even.xyxy.lo.xyxy.s01230123;
    vstore8(as_uint8(b),1,o);
    int4 w=v.hi.lo.wzyx;
    w.hi.x=77;
    w.even=w.odd;
    vstore4(as_uint4(w),4,o);
}

//== swizzled_targets
kernel void swizzled_targets(global uint*in, global uint*out) {
    int i=I;
    int8 v=vload8(i,(global int*)in);
    v.s15=v.s51;
    v.s7654=v.s0123+1;
    v.hi.lo.y^=5;
    v.s0+=v.s7++;
    v.odd-=v.even;
    v.even.hi=(int2)(1,2);
    int4 t=(int4)(0);
    t.xw=v.s37;
    t.zy=(int2)(v.s0,v.s1)*2;
    t.w<<=3;
    int k=in[i]&3;
    int arr[4]={1,2,3,4};
    ((int*)&t)[k]+=arr[k];
    global uint*o=out+i*32;
    vstore8(as_uint8(v),0,o);
    vstore4(as_uint4(t),2,o);
}

//== shuffles
kernel void shuffles(global uint*in, global uint*out) {
    int i=I;
    uchar16 a=as_uchar16(vload4(i,in)), b=as_uchar16(vload4(i+9,in));
    uchar2 m2=(uchar2)(in[i]&255,31);
    uchar2 r=shuffle2(a,b,m2);
    ushort4 s=shuffle((ushort2)(5,6),as_ushort4(vload2(i,in)));
    uint8 t=shuffle2(vload2(i,in),vload2(i+3,in),vload8(i,in));
    float4 f=shuffle2(as_float4(vload4(i,in)),as_float4(vload4(i+1,in)),(uint4)(9,3,in[i],5));
    ulong4 ul=shuffle((ulong8)(1,2,3,4,5,6,7,in[i]),(ulong4)(in[i],15,7,~0ul));
    char16 c16=shuffle2((char2)(1,2),(char2)(3,(char)in[i]),a);
    global uint*o=out+i*32;
    o[0]=r.x;
    o[1]=r.y;
    o[2]=s.x;
    o[3]=s.y;
    o[4]=s.z;
    o[5]=s.w;
    vstore8(t,1,o);
    vstore4(as_uint4(f),4,o);
    o[20]=ul.x;
    o[21]=ul.y;
    o[22]=ul.z;
    o[23]=ul.w;
    vstore4(as_uint4(c16),6,o);
}

//== half_in_memory
kernel void half_in_memory(global uint*in, global uint*out) {
    int i=I;
    global half*h=(global half*)(in+i*8);
    global uint*o=out+i*256;
    // What a NaN carries need not survive.
#undef N
#define N(e,n) select(as_uint##n(e),(uint##n)(0x7fc00000),isnan(e))
    vstore16(N(vload_half16(0,h),16),0,o);
    float3 f3=vload_half3(1,h);
    uint3 n3=N(f3,3);
    o[16]=n3.x;
    o[17]=n3.z;
    float3 a3=vloada_half3(1,h);
    n3=N(a3,3);
    o[18]=n3.x;
    o[19]=n3.z;
    o[20]=N(vload_half(5,h),);
    vstore4(N(vloada_half4(2,h),4),6,o);
    global half*w=(global half*)(o+32);
    global float*ff=(global float*)(in+8192);
    float8 x=vload8(i,ff);
    vstore_half8(x,0,w);
    vstore_half8_rtz(x,1,w);
    vstore_half8_rtp(x,2,w);
    vstore_half8_rtn(x,3,w);
    vstore_half8_rte(x,4,w);
    vstore_half3_rtp(x.s123,20,w);
    vstorea_half4(x.lo,22,w);
    vstore_half_rtz(x.s7,100,w);
    double4 d=convert_double4(x.hi)*1.000001;
    vstore_half4_rtn(d,27,w);
    vstore_half2_rte(d.xy,60,w);
    vstore_half(d.z,130,w);
    vstore_half16((float16)(x,x*1e-7f),10,w);
    local ushort lh_memory[64];
    local half*lh=(local half*)lh_memory;
    if(i==3) vstore_half4(x.lo,0,lh);
    barrier(CLK_LOCAL_MEM_FENCE);
    o[200]=as_uint(vload_half(1,lh));
    ushort ph_memory[4];
    half*ph=(half*)ph_memory;
    vstore_half2(x.s01,0,ph);
    vstore_half2(x.s23,1,ph);
    vstore4(as_uint4(vload_half4(0,ph)),51,o);
}

//== conversions
kernel void conversions(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*128;
    global float*ff=(global float*)(in+8192);
    float4 f=vload4(i,ff);
    int4 n=as_int4(vload4(i,in));
    int p=0;
    P4(convert_char4_sat_rte(f))
    P4(convert_uchar4_sat_rtz(f))
    P4(convert_short4_sat_rtp(f))
    P4(convert_ushort4_sat_rtn(f))
    P4(convert_int4_sat_rte(f))
    P4(convert_uint4_sat_rtp(f))
    P4(convert_uchar4_sat(n))
    P4(convert_short4_sat(n))
    P4(as_int4(convert_float4_rtz(n)))
    P4(as_int4(convert_float4_rtp(as_uint4(n))))
    P4(as_int4(convert_float4_rtn(n)))
    long4 L=convert_long4_sat_rtn(f*1e12f);
    P4(L)
    P4(L>>32) ulong4 U=convert_ulong4_sat_rtp(f*1e14f);
    P4(U>>32) double4 d=convert_double4(n)*1.37;
    P4(convert_int4_sat_rtn(d))
    P4(convert_char4_sat_rtz(d))
    P4(as_int4(convert_float4_rtp(d)))
    P4(as_int4(convert_float4_rtz(as_long4(d)))) long4 dd=as_long4(convert_double4_rtp(as_ulong4(d)));
    P4(dd)
    P4(convert_uint4_sat(as_long4(d)))
    P4(convert_int4_rte(d/7))
    P4(convert_ushort4_sat_rte(d))
}

//== conversions_of_half
kernel void conversions_of_half(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*128;
    global float*ff=(global float*)(in+8192);
    float4 f=vload4(i,ff);
    int4 n=as_int4(vload4(i,in));
    int p=0;
#define H4(e) P4(convert_uint4(as_ushort4(e)))
    H4(convert_half4_rte(f))
    H4(convert_half4_rtz(f))
    H4(convert_half4_rtp(f))
    H4(convert_half4_rtn(f))
    H4(convert_half4_rtp(n>>12))
    H4(convert_half4_rtz(n>>14)) double4 d=convert_double4(f)*1.00007;
    H4(convert_half4_rte(d))
    H4(convert_half4_rtn(d)) half4 h=convert_half4(f*0.01f);
    P4(convert_char4_sat_rte(h))
    P4(convert_uchar4_sat_rtp(h))
    P4(convert_int4_sat_rtn(h))
    P4(as_int4(convert_float4(h)))
    P4(convert_ulong4_sat(h))
    H4(convert_half4(convert_ushort4(n)))
}

//== integer_functions
kernel void integer_functions(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*64;
    uint4 u=vload4(i,in);
    ulong2 l=as_ulong2(u);
    ushort8 s=as_ushort8(u);
    uchar16 c=as_uchar16(u);
    int p=0;
    uint4 a=ctz(u);
    P1(a.x);
    P1(a.w);
    uint4 b=popcount(u);
    P1(b.y);
    ulong2 cl=clz(l);
    P1(cl.x);
    ulong2 ct=ctz(l&(ulong2)(0,~0ul));
    P1(ct.x);
    P1(ct.y);
    ushort8 cs=clz(s>>(ushort)5);
    P1(cs.s3);
    P1(cs.s7);
    uchar16 cc=ctz(c&(uchar)0xf0);
    P1(cc.s0);
    P1(cc.sf);
    uchar16 pc=popcount(c);
    P1(pc.s9);
    P1(rotate(u,(uint4)(33,31,0,~0u)).w);
    P1(rotate(c,(uchar16)(9)).s5);
    P1(rotate(l,(ulong2)(65)).y>>32);
    P1(mul_hi(l.x,l.y)>>32);
    P1(mul_hi(as_long(l.x),as_long(l.y)));
    P1(mad_hi(u.x,u.y,u.z));
    P1(mad_sat(as_int(u.x),as_int(u.y),as_int(u.z)));
    P1(mad_sat(as_short8(s),(short8)(99),(short8)(5)).s2);
    P1(hadd(u.x,u.y));
    P1(rhadd(as_int(u.x),as_int(u.y)));
    P1(rhadd(l.x,l.y)>>32);
    P1(hadd(as_char16(c),(char16)(-1)).s3);
    P1(add_sat(as_char16(c),as_char16(c.s89abcdef01234567)).s4);
    P1(sub_sat(s,s.s76543210).s1);
    P1(add_sat(as_long2(l),as_long2(l.yx)).x>>32);
    P1(sub_sat(as_long(l.x),as_long(l.y))>>32);
    P1(abs_diff(as_int(u.x),as_int(u.y)));
    P1(abs_diff(as_long(l.x),as_long(l.y))>>32);
    P1(abs(as_long(l.x))>>32);
    P1(abs(as_char16(c)).s7);
    P1(upsample(as_short8(s).s1,s.s2));
    P1(upsample(u.x,u.y)>>32);
    P1(upsample(as_char16(c).s12,c.s34).y);
    P1(mul24(as_int(u.x)>>8,as_int(u.y)>>8));
    P1(mad24(u.x>>8,u.y>>8,u.z));
    P1(clamp(as_int4(u),-5,1<<20).z);
    P1(max(as_char16(c),(char)3).s2);
    P1(min(s,(ushort8)(77)).s2);
    P1(isordered(as_float(u.x),1.0f));
    P1(any(as_int4(u)));
    P1(all(as_char16(c)));
    P1(bitselect(u,u.yzwx,u.wzyx).x);
    P1(select(u,u.yzwx,as_int4(u)).y);
    P1(select(l,l.yx,(ulong2)(1ul<<63,1)).x);
    P1(select(1u,2u,in[i]&1));
}

//== unions
typedef union {
    int4 v;
    float f[4];
    struct {
        short a;
        uchar b[3];
        long l __attribute__((packed));
    } s;
    char c[24];
} U;
typedef struct __attribute__((packed)) {
    char a;
    int3 v;
    short b;
    double d;
} PK;
typedef struct {
    U u[2];
    PK p;
    struct {
        int x;
        uint y;
        int z;
    } ;
} S;
kernel void unions(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*64;
    local S ls[16];
    S s;
    U u;
    u.v=as_int4(vload4(i,in));
    s.u[0]=u;
    s.u[1].v=(int4)(5,6,7,8);
    s.u[1].f[2]=3.5f;
    s.u[1].c[17]=in[i];
    s.u[1].s.b[1]=9;
    s.p.a=1;
    s.p.v=u.v.xyz;
    s.p.b=-7;
    s.p.d=u.v.x;
    ls[i]=s;
    barrier(CLK_LOCAL_MEM_FENCE);
    S t=ls[15-i];
    o[0]=t.u[0].s.a;
    o[1]=t.u[0].s.b[2];
    o[2]=t.u[0].c[15];
    o[3]=as_uint(t.u[1].f[2]);
    o[4]=t.u[1].c[17];
    o[5]=t.u[1].s.b[1];
    o[6]=t.p.v.y;
    o[7]=t.p.b;
    o[8]=(uint)(int)t.p.d;
    o[9]=sizeof(U);
    o[10]=sizeof(PK);
    o[11]=sizeof(S);
    t.x=in[i];
    t.y=in[i];
    t.z=in[i];
    t.y+=in[i+1];
    o[12]=t.x;
    o[13]=t.y;
    o[14]=t.z;
    global S*gs=(global S*)(out+8192)+i;
    *gs=t;
    o[15]=gs->p.v.z;
    U*pu=&t.u[in[i]&1];
    *pu=t.u[0];
    o[16]=t.u[1].v.w;
    o[17]=t.u[1].v.x;
}

//== jumps
kernel void jumps(global uint*in, global uint*out) {
    int i=I;
    uint x=in[i], n=0;
    again: if(n>40) goto done;
    x = x&1 ? 3*x+1 : x>>1;
    n++;
    if((x&7)==3) goto skip;
    if(x<4) goto done;
    goto again;
    skip: x^=n;
    if(n&1) goto again;
    x+=5;
    goto again;
    done: out[i*2]=x;
    out[i*2+1]=n;
}

//== switches
kernel void switches(global uint*in, global uint*out) {
    int i=I;
    ulong k=((ulong)(in[i]&3)<<32)|(in[i]>>30);
    uint r;
    switch(k) {
        case 0x100000000UL: r=1;
        break;
        case 0x100000001UL: r=2;
        case 0x200000002UL: r=3;
        break;
        case 3: case 0x300000003UL: r=4;
        break;
        default: r=99;
        case 0: r=7;
    }
    char c=(char)in[i];
    switch(c) {
        case -1: r+=10;
        break;
        case 'a'...'z': r+=20;
        break;
        case -128 ... -100: r+=30;
        default: r+=1;
    }
    switch((long)c) {
        case -5L: r^=1;
        break;
        case 5: do {
            r+=2;
            case -100: r<<=1;
        } while(r<1000);
    }
    out[i]=r;
}

//== program_scope
constant char s0[]="hello", s1[]="wor\0ld";
constant char* constant tab[]={s0,s1,s0+2};
constant int4 vv[2]={(int4)(1,2,3,4),(int4)(5)};
constant int deep[2][3][2]={{{1,2},{3,4},{5,6}},{{7},{8,9}}};
constant struct {
    int a;
    constant int*p;
}
sp={3,&deep[1][1][0]};
global int gv=5;
global int*global gp=&gv;
global int*constant cgp=&gv;
global int ga[4]={1,2,3,4};
global int*global gap[2]={ga+1,&ga[3]};
constant float2 cf[]={{1,2},{3,4}};
kernel void program_scope(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*16;
    o[0]=tab[i%3][i&3];
    o[1]=vv[i&1].z;
    o[2]=deep[i&1][i%3][i&1];
    o[3]=*sp.p+sp.a;
    o[4]=*gp+*cgp;
    o[5]=gap[i&1][0];
    o[6]=(uint)cf[i&1].y;
    constant char*q=tab[1]+i%6;
    o[7]=*q;
    o[8]=sizeof(s1);
    constant int*pp=(constant int*)vv;
    o[9]=pp[i&7];
    const int priv[3]={i,i+1,(int)in[i]};
    o[10]=priv[i%3];
    o[11]="xyz"[i&3];
    o[12]=as_uint(((constant float*)cf)[i&3]);
}

//== operators
kernel void operators(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*256;
    int4 a=as_int4(vload4(i,in)),b=as_int4(vload4(i+7,in));
    int p=0;
    P4(a<b)
    P4(!a)
    P4(a&&b)
    P4(a||0)
    P4(~a)
    P4(a<<b)
    P4(a>>(b&63))
    P4(a?b:1)
    P4(-a) long2 l=as_long2(a);
    P1((l<as_long2(b)).x);
    char4 c=convert_char4(a);
    P4(c<<(char4)(9,1,7,0))
    P4(c==convert_char4(b)) float4 f=convert_float4(a);
    P4(f>=convert_float4(b))
    P4(isnan(f/0.0f-f/0.0f))
    P1(a.x/(b.x|1));
    P1(a.x%(b.x|1));
    P1((short)a.x>>20 & 7);
    P1((uchar)a.x*(uchar)a.y);
    P1((a.x,b.x));
    uint u=a.x;
    P1(u/7u);
    P1(u%10u);
    ulong U=as_ulong(a.xy);
    P1(U/1000000007ul);
    P1(as_long(a.zw)%-1000003L);
    double2 d=convert_double2(a.xy);
    P1((d>1.0).x);
    P1(a.x>b.x?c.x:(short)5);
    a+=b;
    a*=3;
    a^=b;
    a>>=1;
    a%=(int4)(7);
    P4(a) bool q=a.x;
    P1(q+q);
    P1(1.5f==a.x/2.0f);
    P1((int)(float)(in[i]>>2));
    a++;
    --a;
    P1(a++.x);
    P1(a.x);
    P1(vec_step(int3)+vec_step(a)+vec_step(long));
}

//== exact_functions
kernel void exact_functions(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*256;
    float4 f=vload4(i,(global float*)(in+8192)),g=vload4(i+16,(global float*)(in+8192));
    int p=0;
    int4 e;
    float4 ip;
#define F4(V_) {uint4 t_=as_uint4(V_);P1((t_).x);P1((t_).y);P1((t_).z);P1((t_).w);}
#define I4(V_) {int4 t_=V_;P1((t_).x);P1((t_).y);P1((t_).z);P1((t_).w);}
    F4(fract(f,&ip))
    F4(ip)
    F4(frexp(f,&e))
    I4(e)
    F4(modf(g,&ip))
    F4(ip)
    F4(ldexp(f,(int4)(3,-200,120,0)))
    F4(nextafter(f,g))
    I4(ilogb(f))
    F4(logb(g))
    F4(rint(f))
    F4(round(f*0.5f))
    F4(trunc(g))
    F4(fmod(f,g))
    F4(remainder(f,g)) int4 q;
    F4(remquo(f,g,&q))
    I4(q&7)
}

//== atomics
kernel void atomics(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out;
    if(i==0) {
        for(int j=0;j<16;j++)o[j]=j==4?~0u:0;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    atomic_add(o,i);
    atomic_sub((volatile global int*)o+1,i);
    atomic_inc(o+2);
    atomic_max((global int*)o+3,(int)(in[i]>>1));
    atomic_min(o+4,in[i]);
    atomic_or(o+5,1u<<i);
    atomic_xor(o+6,in[i]);
    atomic_and(o+4,~0u);
    local atomic_int la;
    local uint lu;
    if(i==0) {
        atomic_init(&la,3);
        lu=100;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_fetch_add_explicit(&la,i,memory_order_relaxed,memory_scope_work_group);
    atomic_dec(&lu);
    barrier(CLK_LOCAL_MEM_FENCE);
    if(i==0) {
        o[7]=atomic_load_explicit(&la,memory_order_acquire,memory_scope_work_group);
        o[8]=lu;
    }
    int ex=0;
    global atomic_int*ga=(global atomic_int*)(o+9);
    if(i==3) {
        atomic_compare_exchange_strong_explicit(ga,&ex,42,memory_order_relaxed,memory_order_relaxed,memory_scope_device);
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if(i==0)o[10]=atomic_cmpxchg(o+9,42u,43u);
}

//== bit_fields
kernel void bit_fields(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*64;
    long3 a=as_long3((ulong3)(in[i]*77777777777ul,in[i+1]*5555555555ul,~0ul)),b=as_long3((ulong3)(5,~0ul,in[i]));
    long3 r=bitfield_insert(a,b,37,20);
    ulong3 e=bitfield_extract_unsigned(a,60,4);
    long3 se=bitfield_extract_signed(as_ulong3(a),33,31);
    long3 rv=bit_reverse(a);
    uchar4 rb=bit_reverse(as_uchar4(in[i]));
    ulong3 z=bitfield_extract_unsigned(a,5,0);
    long3 w=bitfield_insert(a,b,0,64);
    short2 sh=bitfield_extract_signed(as_short2(in[i]),3,13);
    char ch=bitfield_insert((char)in[i],(char)9,6,2);
    int p=0;
#define P(q) o[p++]=(uint)(q); o[p++]=(uint)((ulong)(q)>>32);
    P(r.x)
    P(r.y)
    P(r.z)
    P(e.x)
    P(e.y)
    P(e.z)
    P(se.x)
    P(se.y)
    P(se.z)
    P(rv.x)
    P(rv.z)
    P(rb.x)
    P(rb.w)
    P(z.x)
    P(z.z)
    P(w.y)
    P(w.z)
    P(sh.x)
    P(sh.y)
    P(ch)
}

//== dot_products
kernel void dot_products(global uint*in, global uint*out) {
    int i=I;
    global uint*o=out+i*16;
    uint a=in[i],b=in[i+1];
    o[0]=dot_4x8packed_uu_uint(a,b);
    o[1]=dot_4x8packed_ss_int(a,b);
    o[2]=dot_4x8packed_us_int(a,b);
    o[3]=dot_acc_sat_4x8packed_ss_int(a,b,INT_MAX-5);
    o[4]=dot(as_uchar4(a),as_uchar4(b));
    o[5]=dot(as_char4(a),as_uchar4(b));
    o[6]=dot_acc_sat(as_uchar4(a),as_uchar4(b),~0u-3);
    o[7]=dot_acc_sat(as_char4(a),as_char4(b),INT_MIN+5);
}

//== structures
typedef struct T {
    struct T*next;
    int v;
    float3 f;
} T;
typedef struct {
    int3 a[2];
    char c;
} A3;
int walk(T*t) {
    int s=0;
    while(t) {
        s=s*3+t->v+(int)t->f.z;
        t=t->next;
    }
    return s;
}
kernel void structures(global uint*in, global uint*out) {
    int i=I;
    T t[4];
    for(int j=0;j<4;j++) {
        t[j].next=j<3?&t[j+1]:0;
        t[j].v=in[i+j]&255;
        t[j].f=(float3)(j);
    }
    if(in[i]&1) t[0].next=&t[2];
    out[i*8]=walk(t);
    A3 x={{(int3)(1,2,3),{4,5,6}},7},y;
    y=x;
    y.a[in[i]&1].y=99;
    A3 z[2]={y};
    out[i*8+1]=z[0].a[0].y;
    out[i*8+2]=z[0].a[1].y;
    out[i*8+3]=sizeof(A3);
    out[i*8+4]=z[1].c;
    int3 q={1,2,3};
    int3*pq=&q;
    pq->z=5;
    (*pq).xy=(int2)(in[i]);
    out[i*8+5]=q.z+q.x;
    out[i*8+6]=((int*)pq)[1];
    const A3 cx={.c=3,.a={[1]={7,8,9}}};
    out[i*8+7]=cx.a[1].z+cx.c+cx.a[0].x;
}

//== loops
kernel void loops(global uint*in, global uint*out) {
    int i=I;
    uint s=0;
    for(int a=0,b=10;a<b;a++,b--) {
        if(a==3)continue;
        for(uint k=in[i]&15;;k--) {
            if(k==0)break;
            if(k&4) goto out1;
            s+=k;
        }
        s^=a;
        continue;
        out1: s*=3;
        if(s>100000)break;
    }
    do {
        s>>=1;
        switch(s&3) {
            case 0: continue;
            case 1: s+=9;
            break;
            case 2: goto end;
            default: s^=1;
        }
    }while(s>3);
    end: while(1) {
        if(s++>20+(in[i]&3)) break;
    }
    out[i]=s;
}

//== sizes
kernel void sizes(global uint*in, global uint*out) {
    if(I) return;
    int p=0;
#define S(t) out[p++]=sizeof(t); out[p++]=__alignof__(t);
    S(char3)
    S(short3)
    S(long16)
    S(double3)
    S(bool)
    S(size_t)
    S(event_t)
    S(void*)
    S(struct {
        char a; long2 b;
    }
    )
    S(union {
        char a[5]; int b;
    }
    )
    S(float16) struct {
        char a;
        short3 b;
    } __attribute__((aligned(64))) q;
    out[p++]=sizeof(q);
    out[p++]=__alignof__(q);
    out[p++]=sizeof((char)1+(char)1);
    out[p++]=sizeof(1?1:1.0);
    out[p++]=((size_t)&((struct {
        char a;float4 b;
    }
    *)0)->b);
}
